"""The line of a patch: which files it changes, and which it creates, deletes or moves."""

from __future__ import annotations

import json

from ferrule.conversation import ToolCall
from ferrule.session.terminal.call_lines import format_call

PATCH = """*** Begin Patch
*** Update File: api.py
*** Move to: server.py
@@
-one
+two
*** Add File: new.py
+one
*** Delete File: README.md
*** Update File: b.py
@@
-x
+y
*** End Patch
"""


def test_files_that_a_patch_creates_deletes_or_moves_are_named_as_such() -> None:
    line = format_call(ToolCall("c", "apply_patch", json.dumps({"patch": PATCH})))
    assert line == "▸ apply_patch  api.py moved to server.py, new.py created, README.md deleted, b.py  +3 −2"
    twice = "*** Begin Patch\n" + "*** Update File: b.py\n@@\n-x\n+y\n" * 2 + "*** End Patch\n"
    assert "apply_patch  b.py  +2 −2" in format_call(ToolCall("c", "apply_patch", json.dumps({"patch": twice})))
    many = "*** Begin Patch\n" + "".join(f"*** Delete File: {name}\n" for name in "abcdefg") + "*** End Patch\n"
    assert "e deleted and 2 more" in format_call(ToolCall("c", "apply_patch", json.dumps({"patch": many})))
