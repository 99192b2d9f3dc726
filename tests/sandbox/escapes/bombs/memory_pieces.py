"""Take 400 megabytes in small pieces.

family: bombs
canary: memory, claim
stops: full, container
root: no
alone: yes
"""

pieces = []
for _ in range(400):
    pieces.append(b"x" * 1_000_000)
print(CLAIM)
