"""Write a hundred megabytes to one file.

family: bombs
canary: claim
stops: full, container
root: no
alone: yes
"""

with open("big", "wb") as file:
    for _ in range(100):
        file.write(b"x" * 1_000_000)
print(CLAIM)
