"""Asks the questions of an evaluation through the ordinary pipeline: the model writes a call, the executor runs it, the
model answers from the result.

Foreign tools have no code: each call of one returns the next result of the question's list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ferrule.agent.pipeline import Pipeline
from ferrule.builtin_tools import calculator
from ferrule.conversation import (
    Conversation,
    MalformedCall,
    Message,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    user,
)
from ferrule.errors import ConversationError, ToolFailed
from ferrule.events import MessageFinished
from ferrule.formats.nanochat import write_call
from ferrule.tools.decorator import Tool
from ferrule.toolspec import ToolSpec
from ferrule.training.embedded.scoring import EvaluationQuestion, MadeCall, ModelAnswer, Score

_ERROR = "error: "


@dataclass(frozen=True, slots=True)
class ScoredQuestion:
    """A question, what the model answered, and how that was scored."""

    question: EvaluationQuestion
    answers: tuple[ModelAnswer, ...]
    score: Score

    @property
    def confidence(self) -> float | None:
        """The least confidence in a call that was made; None without calls, or for a model that has none."""
        found = (call.confidence for answer in self.answers for call in answer.calls)
        return min((one for one in found if one is not None), default=None)


async def ask_all(
    pipeline: Pipeline,
    questions: Iterable[EvaluationQuestion],
    together: int,
    report_progress: Callable[[], None] = lambda: None,
) -> list[ScoredQuestion]:
    """Ask questions, `together` at a time, in a pipeline without tools. `report_progress` is called after each."""
    places = asyncio.Semaphore(together)

    async def ask_one(question: EvaluationQuestion) -> ScoredQuestion:
        async with places:
            tools = make_tools(question.tools, question.results)
            answers = await answer_requests(question.prompts, pipeline.using(*tools), question.given)
        report_progress()
        return ScoredQuestion(question, answers, question.score(answers))

    tasks = [asyncio.create_task(ask_one(question)) for question in questions]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def make_tools(specs: Iterable[ToolSpec], results: Iterable[str]) -> list[Tool]:
    """Tools of these specs whose calls return `results` in order, whichever is called; `error: …` is a failure.

    The calculator is the real one, and the only tool where there are no specs.
    """
    left = iter(results)

    async def return_next_result(**_: Any) -> str:
        result = next(left, None)
        if result is None:
            raise ToolFailed("the question has no result for this call")
        if result.startswith(_ERROR):
            raise ToolFailed(result.removeprefix(_ERROR))
        return result

    tools = [
        calculator
        if spec.name == calculator.name
        else Tool.from_schema(spec.name, spec.description, spec.parameters, return_next_result)
        for spec in specs
    ]
    return tools or [calculator]


async def answer_requests(
    prompts: Iterable[str], pipeline: Pipeline, given: Mapping[int, str] = MappingProxyType({})
) -> tuple[ModelAnswer, ...]:
    """Make requests one after another in one conversation; stops early if the model fails to end a turn.

    `given` has the replies that are written in the model's place, by the number of their request.
    """
    conversation = Conversation()
    answers: list[ModelAnswer] = []
    for number, prompt in enumerate(prompts):
        if number in given:
            conversation = conversation.add(user(prompt), assistant(given[number]))
            answers.append(ModelAnswer((), given[number]))
            continue
        confidences: dict[str, float] = {}
        async with pipeline.chat(conversation).chat(prompt).stream() as run:
            async for event in run:
                if isinstance(event, MessageFinished):
                    ids = (call.id for call in event.message.calls)
                    confidences.update(zip(ids, event.confidences, strict=False))
        said = run.conversation.messages[len(conversation) + 1 :]
        answers.append(_make_answer(said, run.stopped == "done", confidences))
        if not answers[-1].is_finished:
            break
        conversation = run.conversation
    return tuple(answers)


def _make_answer(messages: Iterable[Message], is_finished: bool, confidences: Mapping[str, float]) -> ModelAnswer:
    said: list[str] = []
    calls: list[ToolCall | MalformedCall] = []
    results: dict[str, ToolResult] = {}
    for message in messages:
        if message.role == "tool":
            results[message.result.call_id] = message.result
            continue
        said.append(message.text)
        calls += message.calls
    made = (_make_call(call, results[call.id], confidences.get(call.id)) for call in calls if call.id in results)
    return ModelAnswer(tuple(made), "".join(said), is_finished)


def _make_call(call: ToolCall | MalformedCall, result: ToolResult, confidence: float | None) -> MadeCall:
    # Without the note added to repeated calls.
    text = next((part.text for part in result.content if isinstance(part, Text)), "")
    if isinstance(call, MalformedCall):
        return MadeCall(call.raw, text, result.is_error, "", None, confidence)
    try:
        arguments = call.decode()
    except ValueError:
        arguments = None
    if not isinstance(arguments, Mapping):
        return MadeCall(call.arguments, text, result.is_error, call.name, None, confidence)
    return MadeCall(_write_call(call, arguments), text, result.is_error, call.name, arguments, confidence)


def _write_call(call: ToolCall, arguments: Mapping[str, Any]) -> str:
    """The call as a model of this kind writes it; its JSON if it can't be written so."""
    if call.name == calculator.name and isinstance(arguments.get("expression"), str):
        return str(arguments["expression"])
    try:
        return write_call(call.name, arguments)
    except ConversationError:
        return f"{call.name} {call.arguments}"
