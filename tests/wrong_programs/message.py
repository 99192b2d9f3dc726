from ferrule import ScriptedModel, model

pipeline = model(ScriptedModel("Hello.")).chat(42)  # wrong
