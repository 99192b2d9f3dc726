"""What every planning stage is told: the question, the data as far as they may be shown, the tools, earlier results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ferrule.analysis.data.sharing import neutralise_markers
from ferrule.analysis.planning.routing import describe_routes
from ferrule.analysis.result import TaskExecution

MOST_SHOWN = 6000
"""The most characters that a stage is shown of one result."""
NO_DATA = "No data were given. Don't assume any."


@dataclass(frozen=True, slots=True)
class Briefing:
    """The question and its surroundings, the same for all stages of an analysis."""

    question: str
    data: str = ""
    """What models are shown of the data; empty if there are none."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """The descriptions of the tools by name."""
    earlier: str = ""
    """What an earlier analysis found that this one continues."""

    def write(self) -> str:
        """The question and the data."""
        parts = [f"Question:\n{self.question}", f"Data:\n{self.data or NO_DATA}"]
        if self.earlier:
            parts.append(f"An earlier analysis of the same data found:\n{self.earlier}")
        return "\n\n".join(parts)

    def write_tools(self) -> str:
        """The tools, and which of them is best for what."""
        offered = "\n".join(f"- {name}: {description}" for name, description in self.tools.items())
        return f"Tools:\n{offered}\n\nThe best tool for a kind of task:\n{describe_routes(self.tools)}"


def describe_executions(executions: Iterable[TaskExecution]) -> str:
    """Tasks with their results, or with why they have none."""
    return "\n\n".join(map(describe_execution, executions)) or "(none)"


def describe_execution(execution: TaskExecution) -> str:
    """A task with its result, or with why it has none. Content of tables in it makes no marker of a dialect."""
    return neutralise_markers(_describe(execution))


def _describe(execution: TaskExecution) -> str:
    head = f"{execution.id} ({execution.tool}): {execution.task_query}"
    if execution.status != "done":
        return f"{head}\nNo result: {execution.error}"
    shown = shorten(execution.result)
    # The result lists its checks, unless they are in a middle that was left out.
    checks = [(one.status, one.description) for one in execution.checks]
    missing = [f"Check {status}: {what}" for status, what in checks if f"{status}: {what}" not in shown]
    return "\n".join([head, "Result:", shown, *missing])


def shorten(text: str, most: int = MOST_SHOWN) -> str:
    """Cut a text in the middle, saying how much was left out."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def list_problems(problems: Sequence[str]) -> str:
    """Problems as a list for a model."""
    return "\n".join(f"- {problem}" for problem in problems)
