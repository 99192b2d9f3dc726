from ferrule import ScriptedModel, model

pipeline = model(ScriptedModel("Hello.")).chat("Hi").with_(temprature=0.5)  # wrong
