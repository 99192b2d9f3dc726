"""Leave more files than anyone wants.

family: left behind
canary: flood
stops: full
root: no
"""

for number in range(1000):
    open(f"file{number}", "w").close()
