"""Tells the markers in written calls and offers from values that only look like markers.

A notation returns a single text. It writes it a second time with all markers in values replaced, at the same length: a
marker that is still there is the notation's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ferrule.conversation import ToolCall
from ferrule.dialects.segments import Content, Control, TextSegment
from ferrule.errors import DialectError
from ferrule.toolspec import ToolSpec


class StructuralMarkers:
    """The fixed texts of a notation, located in its output."""

    def __init__(self, markers: Sequence[str]) -> None:
        names = sorted(filter(None, markers), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, names)) if names else "(?!)")
        self._clean = lru_cache(maxsize=256)(self._mask_marker)

    def split(
        self, written: str, clean: str | None = None, *, trained: bool = False, recurs: bool = False
    ) -> Iterator[TextSegment]:
        """Split `written` into markers and content; `clean` is the same text without markers in values, if they contain
        any.

        Raises `DialectError` if comparing the two doesn't tell which is which.
        """
        at = 0
        for start, end in self._find_structural(written, clean):
            if start > at:
                yield Content(written[at:start], trained, recurs)
            yield Control(written[start:end], trained)
            at = end
        if at < len(written):
            yield Content(written[at:], trained, recurs)

    def _find_structural(self, written: str, clean: str | None) -> list[tuple[int, int]]:
        spans = [match.span() for match in self._pattern.finditer(written)]
        if clean is None:
            return spans
        own = [match.span() for match in self._pattern.finditer(clean)]
        if len(clean) == len(written) and all(clean[slice(*span)] == written[slice(*span)] for span in own):
            return own
        if [written[slice(*span)] for span in spans] == [clean[slice(*span)] for span in own]:
            # None of the values' markers appear in the text: the notation escapes them.
            return spans
        raise DialectError("a value contains a marker of the notation, which can't be distinguished once written")

    def list_markers(self, text: str) -> list[str]:
        """Everything that looks like a marker, in order."""
        return self._pattern.findall(text)

    def neutralise_call(self, call: ToolCall) -> ToolCall:
        """A call without markers in its name, id and values: the call itself if there are none."""
        arguments = self._neutralise_json(call.arguments)
        name, identifier = self._neutralise(call.name), self._neutralise(call.id)
        if (arguments, name, identifier) == (call.arguments, call.name, call.id):
            return call
        return ToolCall(identifier, name, arguments)

    def neutralise_spec(self, spec: ToolSpec) -> ToolSpec:
        """A tool without markers in its name, description and schema."""
        texts = (spec.name, spec.description, dict(spec.parameters))
        if not self._is_in(texts):
            return spec
        name, description, parameters = self._neutralise_value(texts)
        return replace(spec, name=name, description=description, parameters=parameters)

    def _neutralise_json(self, text: str) -> str:
        if "\\" not in text and not self._pattern.search(text):
            return text
        value = json.loads(text) if text.strip() else {}
        if not self._is_in(value):
            return text
        clean = self._neutralise(text)
        # A marker that JSON escapes, such as one with quotes, is only found in the values themselves.
        return (
            json.dumps(self._neutralise_value(value), ensure_ascii=False) if self._is_in(json.loads(clean)) else clean
        )

    def _neutralise_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._neutralise(value)
        if isinstance(value, dict):
            return {self._neutralise(key): self._neutralise_value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._neutralise_value(item) for item in value]
        return value

    def _is_in(self, value: Any) -> bool:
        if isinstance(value, str):
            return self._pattern.search(value) is not None
        if isinstance(value, dict):
            return any(self._is_in(key) or self._is_in(item) for key, item in value.items())
        return isinstance(value, list | tuple) and any(map(self._is_in, value))

    def _neutralise(self, text: str) -> str:
        return self._pattern.sub(lambda match: self._clean(match.group()), text)

    def _mask_marker(self, marker: str) -> str:
        # Keep punctuation if possible, since a notation may escape it.
        clean = re.sub(r"[^\W_]", "x", marker)
        return "x" * len(marker) if self._pattern.search(clean) else clean
