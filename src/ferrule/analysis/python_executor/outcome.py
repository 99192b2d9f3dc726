"""What a Python task leaves: its result, its code, each attempt with what was wrong, and the checks of the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ferrule.analysis.result import Attempt, ResultCheck
from ferrule.conversation import Image

if TYPE_CHECKING:
    from ferrule.analysis.data.task_value import TaskValue
    from ferrule.analysis.functions.document import FunctionDoc
    from ferrule.analysis.python_executor.stages import ExtractedData, Methodology


@dataclass(frozen=True, slots=True)
class PythonOutcome:
    """What a Python task left. `error` is None if it has a result, which may still have failed checks."""

    result: str = ""
    """The result as a model and a person read it, with failed checks and repairs said."""
    value: Any = None
    """The result as JSON data."""
    pickled: bytes | None = None
    """The result for later tasks, where JSON hasn't all of it."""
    error: str | None = None
    is_final: bool = False
    """Whether the task would fail in the same way if it were run again."""
    code: str | None = None
    methodology: Methodology | None = None
    extracted: ExtractedData | None = None
    functions: tuple[FunctionDoc, ...] = ()
    """Those that the model was shown."""
    output: str = ""
    figures: tuple[Image, ...] = ()
    checks: tuple[ResultCheck, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader of the result should know: repairs, values that the context doesn't hold, unknown functions."""

    @property
    def kept(self) -> TaskValue | None:
        """The result as the `TaskValue` that later tasks see as `results["t1"]`; None without a result."""
        if self.error is not None:
            return None
        from ferrule.analysis.data.task_value import TaskValue

        return TaskValue(self.value, self.pickled)
