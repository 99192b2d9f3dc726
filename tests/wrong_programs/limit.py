from ferrule import ScriptedModel, model

pipeline = model(ScriptedModel("Hello.")).chat("Hi").within(token=1000)  # wrong
