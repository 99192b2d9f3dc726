from ferrule import Image, user

message = user("What is this?", Image("cat.png"))  # wrong
