from ferrule import Policy, Rule

policy = Policy((Rule("dney", "files_*"),))  # wrong
