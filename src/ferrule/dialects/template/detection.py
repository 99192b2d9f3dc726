"""Recognises the family of a chat template: renders a few messages, and finds the notation that reads them back.

Several notations may read the same: hermes and Granite 4 write calls alike. Among those that read most, the one wins
whose markers surround the calls. Rare markers count more: `<tool_call>` belongs to a dozen families, `<arg_key>` to a
few. The lead over the next, and the share of messages read, give the certainty.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import log
from types import MappingProxyType
from typing import Any

from ferrule.dialects.catalogue import load_families
from ferrule.dialects.family import Family
from ferrule.dialects.notation import TextNotation, make_notation_without_calls
from ferrule.dialects.reader.message import Thinking
from ferrule.dialects.template.cuts import TemplateMarkers
from ferrule.dialects.template.messages import MessageShape
from ferrule.dialects.template.trials import Trials, reads_back
from ferrule.errors import DialectError

_SURE = 0.97
_ESCAPE = re.compile(r"\\(['\"n\\])")
_NOTHING: Mapping[str, Any] = MappingProxyType({})
# A template may concatenate them with text, which fails for an undefined name.
_TOKENS: Mapping[str, Any] = MappingProxyType({"bos_token": "<s>", "eos_token": "</s>"})


@dataclass(frozen=True, slots=True)
class DetectedFamily:
    """The name of a notation, how certain it is, from 0 to 1, and the markers as evidence."""

    name: str
    certainty: float
    evidence: tuple[str, ...]


# Texts that distinguish families with the same markers, or without any: all of them are in the template.
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
    "ling3": ("<arg_key>", "<|role_end|>"),
    "gigachat31": ("<|function_call|>", "<|role_sep|>"),
    "gigachat3": ("function call", "<|role_sep|>"),
    "nanochat-tools": ("<|python_start|>", "<|tools_start|>"),
}
_WITHOUT: dict[str, tuple[str, ...]] = {
    "llama3_json": ("<function=", "<tool_call>", ">>>"),
    "cohere": ("<|END_TEXT|>",),
    "mistral": ("[CALL_ID]",),
    "mistral_v7": ("[ARGS]", "[CALL_ID]"),
    "deepseek_v31": ("```json",),
    "glm47": ("</arg_key>\n<arg_value>",),
    "poolside_v1": ("</arg_key>\n<arg_value>",),
    "gigachat3": ("<|function_call|>",),
    "nanochat": ("<|tools_start|>",),
}
# Notations in plain words: their templates contain no marker of their own.
_IN_WORDS = frozenset({"react", "fenced_json", "fenced_code", "raw_json", "json_in_tag", "ovis", "native"})


# The originals of notations that others adopted: chosen if nothing distinguishes two.
_ORIGINALS = ("hermes", "qwen3_coder", "glm45")


@cache
def _list_candidates() -> dict[str, Family]:
    """All families by name, in the order in which they are tried."""
    known = load_families()
    return {name: known[name] for name in dict.fromkeys((*_ORIGINALS, *known))}


def detect_family(template: str, variables: Mapping[str, Any] = _NOTHING) -> DetectedFamily | None:
    """The family whose notation reads what a chat template writes; None if the template writes no calls.

    `variables` are what the template is rendered with: special tokens by name, and anything else it requires. Raises
    `DialectError` for a template that is not valid Jinja, that refuses calls, or whose calls no notation reads.
    """
    # Imports jinja2, so only when there is a template.
    from ferrule.dialects.template.engine import get_engine

    engine, variables = get_engine(template), {**_TOKENS, **variables}
    unread, refusals = "", []
    for tool, parameter in (("weather", "place"), *_list_only_tools()):
        trials = Trials(engine, variables, tool, parameter)
        found, written = _find_readers(trials, variables)
        if found:
            return _choose_best(found, trials, template, variables)
        unread = unread or written
        refusals.append(trials.refusal)
    if all(refusals):
        raise DialectError(f"the chat template writes no tool calls: {refusals[0]}")
    if unread:
        raise DialectError(
            f"no notation reads the calls that the chat template writes, such as {unread!r}: if you know the family, "
            "name it (`ferrule dialects` lists them), or declare one (docs/dialects.md, Adding a family)"
        )
    return None


def detect_thinking(template: str, variables: Mapping[str, Any] = _NOTHING) -> Thinking | None:
    """How a template that writes no calls marks reasoning: the first way that reads what it writes, or the one whose
    markers are in its text, since a template may omit the reasoning that its model writes."""
    from ferrule.dialects.template.engine import get_engine

    ways = dict.fromkeys(
        f.message.thinking for f in _list_candidates().values() if f.message.thinking and not f.select_for_tools
    )
    trials = Trials(get_engine(template), variables, "weather", "place")
    for way in ways:
        notation = make_notation_without_calls("", way)
        if any(
            reads_back(notation, trial, trials.tool, _collect_markers(notation, variables))
            for trial in trials.iterate_thoughts()
        ):
            return way
    return next((way for way in ways if not way.read_by_syntax and way.close in template), None)


def detect_by_markers(text: str) -> DetectedFamily | None:
    """The family whose markers are in a text, the most specific first; None if there is none."""
    scored = sorted(
        (
            (score, name)
            for name, family in _list_candidates().items()
            if (score := _score(name, family, text)) is not None
        ),
        # Among families that can't be distinguished, the one declared first: sorting is stable.
        key=lambda entry: -entry[0][0],
    )
    if not scored:
        return None
    (best, coverage, evidence), name = scored[0]
    rival = next((score[0] for score, other in scored[1:] if not _writes_same_calls(name, other)), 0.0)
    return DetectedFamily(name, _compute_certainty(coverage, best, rival), evidence)


def _writes_same_calls(name: str, other: str) -> bool:
    """Whether two families write calls alike: then only their framing differs, which is the template's."""
    return _list_candidates()[name].syntax == _list_candidates()[other].syntax


def _compute_certainty(coverage: float, best: float, rival: float) -> float:
    ahead = (best - rival) / best if best > 0 else 0.0
    return round(min(_SURE, coverage * (0.6 + 0.4 * min(1.0, 3 * ahead))), 2)


def _list_only_tools() -> Iterator[tuple[str, str]]:
    """The tools of families that know only one: their templates may refuse any other."""
    yield from dict.fromkeys(family.one_tool for family in _list_candidates().values() if family.one_tool)


def _collect_markers(notation: TextNotation, variables: Mapping[str, Any]) -> TemplateMarkers:
    return TemplateMarkers(
        (*notation.markers, *(v for k, v in variables.items() if k.endswith("_token") and isinstance(v, str)))
    )


def _find_readers(trials: Trials, variables: Mapping[str, Any]) -> tuple[list[tuple[str, MessageShape]], str]:
    """The families that read a single call, each with the first shape of it that they read, and the text of a call."""
    found: dict[str, MessageShape] = {}
    written = ""
    for shape, trial in trials.iterate_shapes():
        for name, family in _list_candidates().items():
            notation = TextNotation(family)
            known = _collect_markers(notation, variables)
            written = written or trial.split(known)[1]
            if name not in found and name not in _IN_WORDS and reads_back(notation, trial, trials.tool, known):
                found[name] = shape
    return list(found.items()), written


def _choose_best(
    found: list[tuple[str, MessageShape]], trials: Trials, template: str, variables: Mapping[str, Any]
) -> DetectedFamily:
    """Among the families that read a call, the one that reads most and whose markers are present."""
    ranked = []
    texts: dict[MessageShape, str] = {}
    for name, shape in found:
        notation = TextNotation(_list_candidates()[name])
        known = _collect_markers(notation, variables)
        read = [reads_back(notation, trial, trials.tool, known) for trial in trials.iterate_harder(shape)]
        text = texts.setdefault(shape, trials.render_conversation(shape))
        own, _, evidence = _score(name, notation.family, text) or (0.0, 0.0, ())
        ranked.append((sum(read), own, _compute_share(read), name, evidence))
    ranked.sort(key=lambda entry: (-entry[0], -entry[1]))
    reads, own, share, name, evidence = ranked[0]
    tied = [entry for entry in ranked if entry[:2] == (reads, own)]
    if len(tied) > 1:
        # They write the same: the template's text may still name something that only one of them has.
        hinted = detect_by_markers(_ESCAPE.sub(lambda match: "\n" if match[1] == "n" else match[1], template))
        _, _, share, name, evidence = next((e for e in tied if hinted and e[3] == hinted.name), tied[0])
    # Families that read less are excluded.
    rival = next((score for count, score, _, n, _ in ranked if count == reads and not _writes_same_calls(name, n)), 0.0)
    return DetectedFamily(name, _compute_certainty(share, own, rival) if own else round(0.6 * share, 2), evidence)


def _compute_share(read: list[bool]) -> float:
    return (1 + sum(read)) / (1 + len(read))


def _score(name: str, family: Family, text: str) -> tuple[float, float, tuple[str, ...]] | None:
    """A family's score, its share of the possible maximum, and its markers; None if it is excluded."""
    if name in _IN_WORDS or any(marker in text for marker in _WITHOUT.get(name, ())):
        return None
    signs = _SIGNS.get(name)
    own = tuple(dict.fromkeys((*(signs or ()), *_list_syntax_markers(name))))
    openers = [opener for opener in family.syntax.openers if opener.strip()]
    if signs is not None:
        if not all(sign in text for sign in signs):
            return None
    elif not any(opener in text for opener in openers):
        return None
    others = tuple(marker for marker in TextNotation(family).markers if marker.strip() and marker not in own)
    found = [marker for marker in own if marker in text]
    weight = sum(_weigh_marker(marker) for marker in found)
    missing = sum(_weigh_marker(marker) for marker in own if marker not in text) if signs is None else 0.0
    beside = [marker for marker in others if marker in text]
    total = weight - missing + 0.3 * sum(_weigh_marker(marker) for marker in beside)
    if total <= 0:
        return None
    return total, weight / (weight + missing), (*found, *beside)


def _list_syntax_markers(name: str) -> tuple[str, ...]:
    return tuple(marker for marker in _list_candidates()[name].syntax.markers if marker.strip())


def _weigh_marker(marker: str) -> float:
    """Larger for a marker of few families; those that occur only in signs count as the rarest."""
    known = _count_markers()
    return log((len(_list_candidates()) + 1) / known.get(marker, 1))


@cache
def _count_markers() -> Counter[str]:
    return Counter(marker for family in _list_candidates().values() for marker in TextNotation(family).markers)
