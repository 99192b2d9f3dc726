"""Write inside, then move what was written out.

family: write outside
canary: folder
stops: full, container
root: no
"""

import shutil

with open("mine.txt", "w") as file:
    file.write("mine")
shutil.move("mine.txt", FOLDER + "/mine.txt")
