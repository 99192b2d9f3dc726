from ferrule import Policy, ScriptedModel, calculator, model

pipeline = model(ScriptedModel("Hello.")).chat("Hi").using(calculator, polcy=Policy())  # wrong
