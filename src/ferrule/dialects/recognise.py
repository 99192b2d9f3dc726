"""Tells the family of a chat template by the markers that stand in it.

A marker counts for as much as it is rare: `<tool_call>` belongs to a dozen families, `<arg_key>` to a few. Of the
families whose markers are there the most specific one wins; how far it is ahead, and how many of its markers are there,
is the certainty.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from math import log

from ferrule.dialects.catalogue import families
from ferrule.dialects.family import Family, TextNotation

_SURE = 0.97
_ESCAPE = re.compile(r"\\(['\"n\\])")


@dataclass(frozen=True, slots=True)
class Recognised:
    """The name of a notation, how sure that is, from 0 to 1, and the markers that tell."""

    name: str
    certainty: float
    evidence: tuple[str, ...]


# What tells families apart whose markers are the same, or that have none: texts of which all stand in the template.
_SIGNS: dict[str, tuple[str, ...]] = {
    "hermes": ("<tool_call>", '"arguments":'),
    "granite4": ("<tool_call>", '"arguments":', "<|start_of_role|>"),
    "ernie45": ("<tool_call>", '"arguments":', "<tool_output>"),
    "reka_edge": ("<tool_call>", '"arguments":', "<sep>"),
    "cohere2": ("<|START_ACTION|>", "<|END_TEXT|>"),
    "llama3_json": ("<|start_header_id|>", '"parameters":'),
    "mistral": ("[TOOL_CALLS]", "[ARGS]"),
    "mistral_small": ("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
    "mistral_v7": ("[TOOL_CALLS]", "[TOOL_RESULTS]", "[INST]"),
    "harmony": ("<|channel|>", "<|message|>", "<|call|>"),
    "deepseek_v3": ("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "```json"),
    "glm45": ("<arg_key>", "</arg_key>\n<arg_value>"),
}
_WITHOUT: dict[str, tuple[str, ...]] = {
    "llama3_json": ("<function=", "<tool_call>", ">>>"),
    "cohere": ("<|END_TEXT|>",),
    "mistral": ("[CALL_ID]",),
    "mistral_v7": ("[ARGS]", "[CALL_ID]"),
    "deepseek_v31": ("```json",),
    "glm47": ("</arg_key>\n<arg_value>",),
    "poolside_v1": ("</arg_key>\n<arg_value>",),
}
# Notations in plain words: no template of these says so by a marker of its own.
_IN_WORDS = frozenset({"react", "fenced_json", "fenced_code", "raw_json", "json_in_tag", "ovis", "native"})


def for_template(template: str) -> Recognised | None:
    """The family whose markers a chat template holds, the most specific first; None where there is none."""
    text = _ESCAPE.sub(lambda match: "\n" if match[1] == "n" else match[1], template)
    scored = sorted(
        ((score, name) for name, family in families().items() if (score := _score(name, family, text)) is not None),
        # Of families that can't be told apart, the one declared first: the sort keeps their order.
        key=lambda entry: -entry[0][0],
    )
    if not scored:
        return None
    (best, coverage, evidence), name = scored[0]
    rival = scored[1][0][0] if len(scored) > 1 else 0.0
    ahead = (best - rival) / best
    return Recognised(name, round(min(_SURE, coverage * (0.6 + 0.4 * min(1.0, 3 * ahead))), 2), evidence)


def _score(name: str, family: Family, text: str) -> tuple[float, float, tuple[str, ...]] | None:
    """How much speaks for a family, which part of what could, and which markers; None where it is out of question."""
    if name in _IN_WORDS or any(marker in text for marker in _WITHOUT.get(name, ())):
        return None
    signs = _SIGNS.get(name)
    own = tuple(dict.fromkeys((*(signs or ()), *_syntax_markers(name))))
    openers = [opener for opener in family.syntax.openers if opener.strip()]
    if signs is not None:
        if not all(sign in text for sign in signs):
            return None
    elif not any(opener in text for opener in openers):
        return None
    others = tuple(marker for marker in TextNotation(family).markers if marker.strip() and marker not in own)
    found = [marker for marker in own if marker in text]
    weight = sum(_weight(marker) for marker in found)
    missing = sum(_weight(marker) for marker in own if marker not in text) if signs is None else 0.0
    beside = [marker for marker in others if marker in text]
    total = weight - missing + 0.3 * sum(_weight(marker) for marker in beside)
    if total <= 0:
        return None
    return total, weight / (weight + missing), (*found, *beside)


def _syntax_markers(name: str) -> tuple[str, ...]:
    return tuple(marker for marker in families()[name].syntax.markers if marker.strip())


def _weight(marker: str) -> float:
    """Larger for a marker of few families; those that only signs name are as rare as can be."""
    known = _spread()
    return log((len(families()) + 1) / known.get(marker, 1))


@cache
def _spread() -> Counter[str]:
    return Counter(marker for family in families().values() for marker in TextNotation(family).markers)
