"""Write a hundred megabytes as many files, each of them small.

family: bombs
canary: claim
stops: full
root: no
alone: yes
"""

for number in range(200):
    with open(f"file{number}", "wb") as file:
        file.write(b"x" * 500_000)
print(CLAIM)
