"""Puts right a call that is nearly right, once its own closer was seen and its tool's schema then accepts it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from ferrule.dialects.calls import Call, Calls
from ferrule.dialects.json_reading import INVALID
from ferrule.dialects.repair import repaired
from ferrule.dialects.stream import NotACall, Reading, Stops, Stream


@dataclass(frozen=True, slots=True)
class Mended:
    """What a body says after repair: the name and the id where it holds them, the JSON of the arguments, the repairs.

    `after` are the calls that follow in the same body, where it is a list of them.
    """

    name: str
    arguments: str
    repairs: tuple[str, ...]
    native_id: str | None = None
    after: tuple[Mended, ...] = ()


Reread = Callable[[str], Mended | None]
"""Reads the whole text of a call's body again, leniently; None where that doesn't help."""


def mended(
    stream: Stream, calls: Calls, fault: NotACall, start: int, stops: Stops, closer: str, reread: Reread
) -> Reading[None]:
    """Go on after `fault` up to the next of `stops`; where that is `closer`, try to read the call after all.

    `start` is where in the call's raw text its body began. Raises `fault` where the text ends. In a notation without
    a closer (`closer` empty) a call is closed by what comes next, and by the end of a text that the model ended.
    """
    marker = yield from stream.find(stops, stream.frame)
    call = calls.current
    is_cut = not marker and (closer or not (stream.stopped or stream.ends_here))
    if is_cut or call is None or stream.raw is None:
        raise fault
    body = stream.raw.getvalue()[start:]
    if closer:
        if marker != closer:
            call.fail(fault.kind)
            return
        stream.frame(stream.marker_end)
    whole = reread(body) if calls.repair and fault.kind == INVALID else None
    if whole is None or not _taken(stream, calls, call, whole):
        call.fail(fault.kind)


def _taken(stream: Stream, calls: Calls, call: Call, whole: Mended) -> bool:
    """Finish the call with what was read leniently, where nothing that has gone out contradicts it."""
    name = call.name or whole.name
    if not name or (whole.name and whole.name != name):
        return False
    if not _accepted(calls, name, whole) or not all(_accepted(calls, one.name, one) for one in whole.after):
        return False
    if not call.replace(whole.arguments):
        return False
    call.native_id = call.native_id or whole.native_id
    if whole.after:
        # Which characters were whose is not known any more.
        stream.raw = None
    if not call.started:
        call.named(name)
    call.finish(whole.repairs)
    for one in whole.after:
        following = calls.begin(stream)
        stream.raw = None
        following.named(one.name, one.native_id)
        following.replace(one.arguments)
        following.finish(one.repairs)
    return True


def _accepted(calls: Calls, name: str, whole: Mended) -> bool:
    """Whether there is such a tool and its schema allows these arguments; any will do where no tools are known."""
    parameters = calls.parameters(name)
    return not calls.offers_any or (parameters is not None and parameters.accepts(json.loads(whole.arguments)))


def reread_arguments(body: str) -> Mended | None:
    """`Reread` for a body that is nothing but the arguments' object."""
    # White space at the end has gone out already where a closing brace is missing after it.
    found = repaired(body.lstrip())
    if found is None or not isinstance(json.loads(found[0]), dict):
        return None
    return Mended("", *found)
