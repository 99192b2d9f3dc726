"""Offer a process of the machine to the kernel as the first to be killed.

family: parent
canary: victim, claim
stops: full, container
root: no
"""

with open(f"/proc/{VICTIM}/oom_score_adj", "w") as file:
    file.write("1000")
print(CLAIM)  # it may be the first already
