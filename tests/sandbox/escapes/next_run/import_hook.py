"""Stand in the way of every later import.

family: next run
canary: next
stops: full, container
root: no
"""

import sys


class Finder:
    @staticmethod
    def find_spec(name, *_):
        if name == "colorsys":
            print(CLAIM)


sys.meta_path.insert(0, Finder)

# ---- the next run ----
import sys

sys.modules.pop("colorsys", None)
import colorsys
