"""Beam: harmony's messages, with the arguments of a call in tags.

Calls are read by `notations/harmony.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.families.gpt_oss import HARMONY
from ferrule.dialects.notations.harmony import Harmony
from ferrule.dialects.notations.tag_arguments import TagArguments
from ferrule.dialects.wording import TOOL_LINES, JsonOffer

_PARAMETER = ("<rfl:parameter", "</rfl:parameter>")
_HEADER = " to={name}<|channel|>analysis <|constrain|>xml<|message|>"

BEAM = replace(
    HARMONY,
    name="beam",
    models="Beam",
    aliases=(),
    syntax=Harmony(_HEADER, TagArguments(*_PARAMETER)),
    offer=JsonOffer(
        f"# Tools\n\n{TOOL_LINES}",
        f'\n\nA call is written so:\n{_HEADER.replace("{name}", "NAME")}{_PARAMETER[0]} name="key">\nvalue\n'
        f"{_PARAMETER[1]}<|call|>",
    ),
    turns=None,
    other_turns=(),
)

FAMILIES = (BEAM,)
