"""Preferred Networks' PLaMo 3: a section of requests, each with its name and its JSON between tags.

Calls are read by `notations/named_json.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import Family
from ferrule.dialects.notations.named_json import NamedJson
from ferrule.dialects.reader.message import TIGHT_THINKING, MessageMarkers
from ferrule.dialects.wording import MAY_CALL, JsonOffer


def _mark(name: str) -> str:
    return f"<|plamo:{name}:plamo|>"


_TURN = "<|plamo:tag|>"
_SECTION = (_mark("begin_tool_requests"), _mark("end_tool_requests"))
_ARGUMENTS = (_mark("begin_tool_arguments"), _mark("end_tool_arguments"))
_CONSTRAIN, _MESSAGE = "<|plamo:constrain|>", "<|plamo:msg|>"
_HEADING = (_ARGUMENTS[0], _CONSTRAIN, "json", _MESSAGE)

PLAMO3 = Family(
    name="plamo3",
    models="PLaMo 3",
    syntax=NamedJson(
        _mark("begin_tool_request"),
        _mark("end_tool_name"),
        _mark("end_tool_request"),
        section=_SECTION,
        kind=("", _mark("begin_tool_name")),
        heading=_HEADING,
        fence=("", _ARGUMENTS[1]),
        tokens=(*_ARGUMENTS, _CONSTRAIN, _MESSAGE),
        before=(_TURN,),
    ),
    message=MessageMarkers(
        replace(TIGHT_THINKING, open=_mark("begin_think"), close=_mark("end_think")), turn_markers=(_TURN,)
    ),
    offer=JsonOffer(
        MAY_CALL,
        f"\n\nA call is written like this:\n{_SECTION[0]}{_mark('begin_tool_request')}{_mark('begin_tool_name')}NAME"
        f"{_mark('end_tool_name')}{''.join(_HEADING)}ARGUMENTS{_ARGUMENTS[1]}{_mark('end_tool_request')}{_SECTION[1]}",
    ),
)

FAMILIES = (PLAMO3,)
