"""Find what an earlier run of somebody else left in memory.

family: next run
canary: next
stops: full, container
root: no
"""

kept = ["earlier", CLAIM + "-kept"]
import gc

gc.freeze()
import builtins

builtins.kept = kept

# ---- the next run ----
import gc

print([each for each in gc.get_objects() if type(each) is list and each[:1] == ["earlier"]])
print(globals().get("kept") or getattr(__import__("builtins"), "kept", None))
