"""`ferrule eval embedded`: how often a model's calls and final answers are right, by kind.

Each question goes through the ordinary pipeline: the model writes a call, the executor runs it, the model answers from
the result. Needs no torch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ferrule._util.background import run_synchronously
from ferrule.agent.pipeline import Pipeline
from ferrule.builtin_tools import calculator
from ferrule.conversation import Conversation, Message, Text, ToolCall, ToolResult
from ferrule.engines import limit_blas_threads
from ferrule.errors import SettingsError
from ferrule.models.protocol import Model
from ferrule.training.embedded.report import FigureTable, Report, WrongAnswer, make_table
from ferrule.training.embedded.scoring import (
    CalculatorCall,
    ModelAnswer,
    Question,
    Score,
    draw_held_out_questions,
    make_questions,
    read_handwritten_requests,
)

HELD_OUT = "held-out problems"


class EvaluationSettings(BaseModel):
    """What is measured."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Path | None = None
    """The folder of the model to measure; None is the one in the package."""
    count: Annotated[int, Field(ge=0)] = 2000
    """Held-out problems to draw."""
    seed: Annotated[int, Field(ge=0)] = 1
    """The seed for drawing problems."""
    phrasings: Literal["steering", "final", "none"] = "none"
    """The hand-written list to ask as well: recipes may be tuned on `steering`, never on `final`."""
    failures: bool = False
    """Report the questions with wrong answers; those of the `final` list are never reported."""
    together: Annotated[int, Field(gt=0)] = 32
    """Concurrent conversations."""
    most_tokens: Annotated[int, Field(gt=0)] = 400
    """The maximum number of tokens of one message, for turns that the model never ends."""


Progress = Callable[[int, int], None]
"""Called with the number of answered questions, and the total."""


def run_evaluation(settings: EvaluationSettings, progress: Progress | None = None) -> Report:
    """Load a model and measure it.

    Raises `ModelError` if there is no such model, and `SettingsError` for settings that leave nothing to ask, or that
    request what is never reported.
    """
    _check(settings)
    return run_synchronously(_load_and_evaluate(settings, progress))


async def _load_and_evaluate(settings: EvaluationSettings, progress: Progress | None) -> Report:
    from ferrule.models.embedded import load_embedded_model, load_local_model

    with limit_blas_threads():
        model = load_local_model(settings.model) if settings.model is not None else load_embedded_model()
    async with model:
        return await evaluate(model, settings, progress)


async def evaluate(model: Model, settings: EvaluationSettings, progress: Progress | None = None) -> Report:
    """Measure a model, which must know the calculator, greedily; ignores `settings.model`. Raises as above."""
    _check(settings)
    sets = {HELD_OUT: list(draw_held_out_questions(settings.count, settings.seed))} if settings.count else {}
    if settings.phrasings != "none":
        sets[f"{settings.phrasings} phrasings"] = make_questions(read_handwritten_requests(settings.phrasings))
    everything = [question for questions in sets.values() for question in questions]
    counted = _count(len(everything), progress)
    tables: list[FigureTable] = []
    failures: list[WrongAnswer] = []
    for name, questions in sets.items():
        table, failed = await ask_all(model, name, questions, settings, counted)
        tables.append(table)
        failures += failed if settings.failures else ()
    return Report(model.name, settings.seed, tuple(tables), tuple(failures))


async def ask_all(
    model: Model,
    name: str,
    questions: Iterable[Question],
    settings: EvaluationSettings,
    report_progress: Callable[[], None] = lambda: None,
) -> tuple[FigureTable, list[WrongAnswer]]:
    """Ask one set of questions, many at once; its figures and what failed. `report_progress` is called after each."""
    ordered = list(questions)
    pipeline = Pipeline(model).with_(max_tokens=settings.most_tokens).using(calculator)
    places = asyncio.Semaphore(settings.together)

    async def ask_one(question: Question) -> tuple[ModelAnswer, ...]:
        async with places:
            answers = await answer_requests(question.prompts, pipeline)
        report_progress()
        return answers

    tasks = [asyncio.create_task(ask_one(question)) for question in ordered]
    try:
        answered = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    scores = [question.score(answers) for question, answers in zip(ordered, answered, strict=True)]
    table = make_table(name, ((question.kind, score) for question, score in zip(ordered, scores, strict=True)))
    return table, _collect_wrong_answers(ordered, answered, scores)


async def answer_requests(prompts: Iterable[str], pipeline: Pipeline) -> tuple[ModelAnswer, ...]:
    """Make requests one after another in one conversation; stops early if the model fails to end a turn."""
    conversation = Conversation()
    answers: list[ModelAnswer] = []
    for prompt in prompts:
        run = await pipeline.chat(conversation).chat(prompt).run()
        answers.append(_make_answer(run.conversation.messages[len(conversation) + 1 :], run.stopped == "done"))
        if not answers[-1].is_finished:
            break
        conversation = run.conversation
    return tuple(answers)


def _make_answer(messages: Iterable[Message], is_finished: bool) -> ModelAnswer:
    said: list[str] = []
    expressions: dict[str, str] = {}
    results: dict[str, ToolResult] = {}
    for message in messages:
        if message.role == "tool":
            results[message.result.call_id] = message.result
            continue
        said.append(message.text)
        expressions |= {
            call.id: _get_expression(call) if isinstance(call, ToolCall) else call.raw for call in message.calls
        }
    calls = (
        CalculatorCall(expression, _get_own_text(results[id_]), results[id_].is_error)
        for id_, expression in expressions.items()
        if id_ in results
    )
    return ModelAnswer(tuple(calls), "".join(said), is_finished)


def _get_own_text(result: ToolResult) -> str:
    """The result's text, without the note added to repeated calls."""
    return next((part.text for part in result.content if isinstance(part, Text)), "")


def _get_expression(call: ToolCall) -> str:
    """The expression of a calculator call; the arguments as written if there is none."""
    try:
        return str(call.decode()["expression"])
    except (ValueError, KeyError, TypeError):
        return call.arguments


def _collect_wrong_answers(
    questions: list[Question], answered: list[tuple[ModelAnswer, ...]], scores: list[Score]
) -> list[WrongAnswer]:
    return [
        WrongAnswer(question.id, question.kind, question.prompts, answers, score)
        for question, answers, score in zip(questions, answered, scores, strict=True)
        if not score.is_right
    ]


def _count(total: int, progress: Progress | None) -> Callable[[], None]:
    done = 0

    def report_progress() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    return report_progress


def _check(settings: EvaluationSettings) -> None:
    if not settings.count and settings.phrasings == "none":
        raise SettingsError("nothing to ask: count is 0 and no list of phrasings is named")
    if settings.failures and settings.phrasings == "final":
        raise SettingsError(
            "failures of the final list are never shown, so that no recipe is tuned on them; ask for figures"
        )
