from ferrule import Policy

policy = Policy(profile="accept_edits")  # wrong
