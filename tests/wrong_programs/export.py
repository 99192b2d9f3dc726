from ferrule import tooll  # wrong

print(tooll)
