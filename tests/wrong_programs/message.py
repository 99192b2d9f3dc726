from ferrule import ScriptedModel, model

pipeline = model(ScriptedModel("Hello.")).chat({"role": "user", "content": "Hi"})  # wrong
