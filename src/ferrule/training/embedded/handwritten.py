"""The hand-written lists of requests that no template could have produced.

The first edition's two lists (`steering`, `final`) are about the calculator. The second edition's (`open`, `held-out`)
are three each: requests to the calculator, to tools that training never saw, and what has to be declined.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Any, Literal

from ferrule.builtin_tools import calculator
from ferrule.formats.tool_offers import read_offers
from ferrule.toolspec import ToolSpec
from ferrule.training.embedded.scoring import (
    EvaluationQuestion,
    HandwrittenRequest,
    ModelAnswer,
    Score,
    list_refusals,
    make_questions,
    says_impossible,
)
from ferrule.training.synth.tool_use.tool_replies import DECLINED

ListName = Literal["steering", "final", "open", "held-out"]
HELD_OUT_LISTS = frozenset({"final", "held-out"})
"""What is asked for the last figure only: its failures are never shown."""

Call = tuple[str, Mapping[str, Any]]
"""The name of a tool, and the arguments."""


@dataclass(frozen=True, slots=True)
class ForeignRequest:
    """A request to foreign tools. `accepted` has the lists of calls that are right, `says` what the reply contains."""

    id: str
    kind: str
    prompts: tuple[str, ...]
    tools: tuple[ToolSpec, ...]
    accepted: tuple[tuple[Call, ...], ...]
    results: tuple[str, ...]
    says: tuple[str, ...]


def read_lists(name: ListName) -> dict[str, list[EvaluationQuestion]]:
    """The questions of the hand-written lists of this name, by what the table of their figures is called."""
    if name in ("steering", "final"):
        return {f"{name} phrasings": make_questions(read_calculator_requests(name))}
    stem = name.replace("-", "_")
    tools = _read_tools(f"{stem}_tools.json")
    return {
        f"{name} calculator": make_questions(read_calculator_requests(f"{stem}_calculator")),
        f"{name} tools": [_make_tool_question(entry, tools) for entry in _read_lines(f"{stem}_tools")],
        f"{name} declined": [_make_declined_question(entry, tools) for entry in _read_lines(f"{stem}_declined")],
    }


def read_calculator_requests(list_file: str) -> list[HandwrittenRequest]:
    """The requests of one list about the calculator, by the name of its file without the ending."""
    return [
        HandwrittenRequest(entry["id"], entry["kind"], _get_prompts(entry), _get_answer(entry))
        for entry in _read_lines(list_file)
    ]


def _read_lines(list_file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _read_text(f"{list_file}.jsonl").splitlines()]


def _read_text(file: str) -> str:
    return (files("ferrule.embedded") / "phrasings" / file).read_text("utf-8")


def _read_tools(file: str) -> dict[str, ToolSpec]:
    entries = json.loads(_read_text(file))["tools"]
    specs = read_offers(
        {"tools": [{key: entry[key] for key in ("name", "description", "parameters")} for entry in entries]}
    )
    return {spec.name: spec for spec in specs}


def _get_prompts(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(entry["prompts"]) if "prompts" in entry else (entry["prompt"],)


def _get_answer(entry: Mapping[str, Any]) -> str | tuple[str, ...] | None:
    answer = entry["answer"]
    return tuple(answer) if isinstance(answer, list) else answer


def _list_offered(entry: Mapping[str, Any], tools: Mapping[str, ToolSpec]) -> tuple[ToolSpec, ...]:
    known = {**tools, calculator.name: calculator.spec}
    return tuple(known[name] for name in entry["offered"])


def _make_tool_question(entry: Mapping[str, Any], tools: Mapping[str, ToolSpec]) -> EvaluationQuestion:
    accepted = (entry["calls"], *entry.get("accept", ()))
    request = ForeignRequest(
        entry["id"],
        entry["kind"],
        _get_prompts(entry),
        _list_offered(entry, tools),
        tuple(tuple((call["name"], call["arguments"]) for call in calls) for calls in accepted),
        tuple(entry["results"]),
        tuple(entry["says"]),
    )
    return make_tool_question(request)


def make_tool_question(request: ForeignRequest) -> EvaluationQuestion:
    """A request to foreign tools as a question."""
    return EvaluationQuestion(
        request.id, request.kind, request.prompts, partial(score_tool_use, request), request.tools, request.results
    )


def score_tool_use(request: ForeignRequest, answers: Sequence[ModelAnswer]) -> Score:
    """The calls of the whole conversation must be an accepted list, and the last reply must contain what is asked.

    Arguments are compared as JSON values; one that has its default may be given or left out.
    """
    calls = [call for answer in answers for call in answer.calls]
    schemas = {spec.name: spec.parameters for spec in request.tools}
    made = [(call.name, call.arguments) for call in calls]
    is_complete = len(answers) == len(request.prompts) and answers[-1].is_finished
    reply = answers[-1].reply.lower() if answers else ""
    return Score(
        any(_is_same_list(made, accepted, schemas) for accepted in request.accepted),
        is_complete and all(_says(reply, text.lower()) for text in request.says),
    )


def _says(reply: str, text: str) -> bool:
    """Whether a reply contains a text that isn't a part of a longer word or number."""
    before, after = (r"(?<!\w)" if text[0].isalnum() else ""), (r"(?!\w|[.,]\d)" if text[-1].isalnum() else "")
    return re.search(before + re.escape(text) + after, reply) is not None


def _is_same_list(
    made: Sequence[tuple[str, Mapping[str, Any] | None]], wanted: Sequence[Call], schemas: Mapping[str, Any]
) -> bool:
    return len(made) == len(wanted) and all(
        name == expected
        and arguments is not None
        and _normalize(arguments, schemas.get(name, {})) == _normalize(right, schemas.get(name, {}))
        for (name, arguments), (expected, right) in zip(made, wanted, strict=True)
    )


def _normalize(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without those that have their default; without one of its own, an optional one's is null."""
    properties = schema.get("properties", {})
    defaults = {
        name: _tag_booleans(properties[name].get("default"))
        for name in properties
        if name not in schema.get("required", ())
    }
    tagged = {name: _tag_booleans(value) for name, value in arguments.items()}
    return {name: value for name, value in tagged.items() if name not in defaults or defaults[name] != value}


def _tag_booleans(value: Any) -> Any:
    """The value with its booleans made unlike numbers: 1 == 1.0, but true isn't 1."""
    if isinstance(value, bool):
        return (bool, value)
    return [_tag_booleans(item) for item in value] if isinstance(value, list) else value


def _make_declined_question(entry: Mapping[str, Any], tools: Mapping[str, ToolSpec]) -> EvaluationQuestion:
    score = partial(score_declined, entry["kind"])
    return EvaluationQuestion(entry["id"], entry["kind"], _get_prompts(entry), score, _list_offered(entry, tools))


def score_declined(kind: str, answers: Sequence[ModelAnswer]) -> Score:
    """No call, and one of the replies that decline.

    What has no exact result (`inexact`) may also be tried: then the calculator must fail, and the reply say so.
    """
    if len(answers) != 1:
        return Score(right_call=False, right_answer=False)
    answer = answers[0]
    if kind == "inexact" and answer.calls:
        is_called = all(call.is_error for call in answer.calls)
        is_told = says_impossible(answer.reply)
    else:
        is_called = not answer.calls
        is_told = answer.reply in list_refusals() or answer.reply == DECLINED
    return Score(is_called, is_told and answer.is_finished)
