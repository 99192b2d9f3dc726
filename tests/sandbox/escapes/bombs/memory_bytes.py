"""Take 400 megabytes as one object.

family: bombs
canary: memory, claim
stops: full, container
root: no
alone: yes
"""

block = bytearray(400_000_000)
for place in range(0, len(block), 4096):
    block[place] = 1
print(CLAIM)
