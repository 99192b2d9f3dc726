"""The answer of an analysis: the synthesis, the focused answer, and what is said where there is neither."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence
from typing import Literal, Self, TypeAlias

from pydantic import BaseModel, Field, model_validator

from ferrule.analysis.asking import WHOLE, Asker, StageKey
from ferrule.analysis.planning.briefing import Briefing, describe_executions, shorten
from ferrule.analysis.result import FocusedAnswer, TaskExecution
from ferrule.analysis.settings import AnalysisSettings

SYNTHESIS = """\
You write the answer to a question from the results of an analysis.
- Answer first, then the reasons; plain language, no headings.
- Every number must stand in the results, the question or the data. Round if you like, and never compute new ones.
- Say what couldn't be found out, which tasks failed, and which checks did. Say what comes from a model's knowledge.
- key_findings: two to six sentences, each by itself."""

FOCUSED = """\
You give the answer to a question as one value, from the answer and the results of an analysis.
- answer_type: number, yes_no, text, date (as 2026-01-31), list, or none if the analysis didn't answer the question.
- answer_value: the value itself: a number, true or false, a text, a list; null for none.
- formatted_answer: the value as it would be said, with its unit.
Take a number from the results as it stands there; never compute a new one."""

AnswerType: TypeAlias = Literal["number", "yes_no", "text", "date", "list", "none"]
_KINDS: dict[str, tuple[type, ...]] = {
    "number": (int, float),
    "yes_no": (bool,),
    "text": (str,),
    "date": (str,),
    "list": (list,),
    "none": (type(None),),
}


def _is_date(text: object) -> bool:
    """Whether a text is a year, a month, a day or a time of the calendar, as ISO 8601 writes them."""
    padded = str(text) + "0000-01-01"[len(str(text)) :]
    try:
        datetime.datetime.fromisoformat(padded)
    except ValueError:
        return False
    return True


class Synthesis(BaseModel):
    """The answer in full."""

    answer: str = Field(min_length=1)
    key_findings: list[str] = Field(default_factory=list)


class FocusedAnswerReply(BaseModel):
    """The answer as one value, as a model gives it."""

    answer_type: AnswerType
    answer_value: int | float | bool | str | list[int | float | bool | str] | None = None
    formatted_answer: str

    @model_validator(mode="after")
    def _check_type(self) -> Self:
        value, wanted = self.answer_value, _KINDS[self.answer_type]
        if not isinstance(value, wanted) or (isinstance(value, bool) and self.answer_type != "yes_no"):
            raise ValueError(f"answer_value must fit answer_type {self.answer_type!r}, not be {value!r}")
        if self.answer_type == "date" and not _is_date(value):
            raise ValueError(f"answer_value must be a date such as 2026-01-31, 2026-01 or 2026, not {value!r}")
        return self


async def synthesize(
    asker: Asker, briefing: Briefing, settings: AnalysisSettings, executions: Sequence[TaskExecution], note: str = ""
) -> Synthesis:
    """Have the answer written; `note` says why the analysis is partial. Raises what `Asker.ask` raises."""
    partial = f"\n\nThe analysis is partial: {note}. Say so." if note else ""
    return await asker.ask(
        StageKey(WHOLE, "synthesis"),
        SYNTHESIS,
        f"{briefing.write()}\n\nResults:\n\n{describe_executions(executions)}{partial}",
        Synthesis,
        temperature=settings.temperature_for(settings.synthesis_temperature),
        timeout=settings.tool_timeout,
    )


async def focus_answer(
    asker: Asker,
    briefing: Briefing,
    settings: AnalysisSettings,
    executions: Sequence[TaskExecution],
    synthesis: Synthesis,
) -> FocusedAnswer:
    """Have the answer given as one value. Raises what `Asker.ask` raises."""
    reply = await asker.ask(
        StageKey(WHOLE, "focused_answer"),
        FOCUSED,
        f"{briefing.write()}\n\nAnswer:\n{synthesis.answer}\n\nResults:\n\n{describe_executions(executions)}",
        FocusedAnswerReply,
        temperature=settings.temperature_for(settings.synthesis_temperature),
        timeout=settings.tool_timeout,
    )
    return FocusedAnswer(reply.answer_type, reply.answer_value, reply.formatted_answer)


def write_account(executions: Sequence[TaskExecution], reason: str, earlier: Collection[str] = ()) -> str:
    """The answer where no model wrote one: why, and what the finished tasks found, word for word.

    `earlier` are the ids of tasks of the analysis that this one goes on from.
    """

    def name(task: TaskExecution) -> str:
        return f"{task.id}{' of the earlier analysis' if task.id in earlier else ''} ({task.task_query})"

    done = [one for one in executions if one.status == "done"]
    failed = [one for one in executions if one.status != "done"]
    if not done:
        lines = [f"There is no answer: {reason}."]
    else:
        which = "tasks that finished" if any(one.id not in earlier for one in done) else "tasks of the earlier analysis"
        lines = [f"No answer was written: {reason}. The {which} found:"]
        lines += [f"{name(one)}:\n{shorten(one.result, 2000)}" for one in done]
    if failed:
        lines.append("\n".join([f"Without a result: {name(one)}: {one.error}" for one in failed]))
    return "\n\n".join(lines)
