"""A rendering as segments: template text as control, what stands at the sentinels as content."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ferrule.conversation import ToolCall
from ferrule.dialects.segments import Content, Control, SampledIds, Segment
from ferrule.dialects.template_rendering import Rendering, Span
from ferrule.toolspec import ToolSpec


def segments_of(
    rendering: Rendering, contents: Sequence[str], spans: Sequence[Span], dialect: str, length: int
) -> Iterator[Segment]:
    """The segments of the first `length` characters of a rendering; what `dialect` sampled stands as it was."""
    position = 0
    for span in spans:
        sampled = rendering.conversation.messages[span.message].sampled
        header = list(_between(rendering, contents, position, span.start, False))
        is_sampled = sampled is not None and sampled.dialect == dialect
        more = span.opened if is_sampled else ""
        if header and isinstance(header[-1], Control):
            yield from header[:-1]
            yield Control(header[-1].text + more, ends_run=True)
        else:
            yield from header
            yield Control(more, ends_run=True)
        if sampled is not None and is_sampled:
            yield SampledIds(sampled.ids, sampled.logprobs, closer=span.closer)
        else:
            yield from _between(rendering, contents, span.start, span.end, True)
        position = span.end
    yield from _between(rendering, contents, position, length, False)


def words_of(rendering: Rendering, contents: Sequence[str], span: Span) -> Iterator[Control | Content]:
    """What one assistant message says, as the template writes it."""
    return _between(rendering, contents, span.start, span.end, True)


def _between(
    rendering: Rendering, contents: Sequence[str], start: int, end: int, trained: bool
) -> Iterator[Control | Content]:
    """The segments of a stretch of the rendering, whose ends lie in no sentinel."""
    cut = rendering.whole
    for at, piece in enumerate(cut.pieces):
        begins, stops = max(start, cut.starts[at]), min(end, cut.starts[at + 1])
        if begins >= stops:
            continue
        if at % 2:
            kind = cut.slots.slots[int(piece)].kind
            is_trained = trained and kind != "malformed"
            if contents[at // 2]:
                yield Content(contents[at // 2], is_trained, recurs=kind in ("system", "offered"))
        else:
            yield Control(cut.text[begins:stops], trained)


def spec_of(call: ToolCall) -> ToolSpec:
    """A tool that takes just what a call gives, for reading the call back."""
    kinds = ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number"), (dict, "object"), (list, "array"))
    arguments = call.decoded()
    properties = {
        key: {"type": next((name for kind, name in kinds if isinstance(value, kind)), "null")}
        for key, value in (arguments.items() if isinstance(arguments, dict) else ())
    }
    return ToolSpec(call.name, "", {"type": "object", "properties": properties})
