"""Leave a file where the next run works.

family: next run
canary: next
stops: full, container
root: no
"""

open("left", "w").write(CLAIM)

# ---- the next run ----
print(open("left").read())
