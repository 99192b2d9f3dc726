"""The analyst: a question and data become a plan of tasks, and an answer whose numbers come from code that ran.

Its public names are loaded when they are first used, so that `import ferrule.analysis` costs almost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule._util.lazy_exports import make_getattr

if TYPE_CHECKING:
    from ferrule.analysis.analyst import run_analysis, run_analysis_sync, stream_analysis
    from ferrule.analysis.plan import Plan, PlanTask
    from ferrule.analysis.result import AnalysisResult, OutputEntry, TaskExecution
    from ferrule.analysis.settings import AnalysisSettings

_HOMES = {
    "AnalysisResult": "result",
    "AnalysisSettings": "settings",
    "OutputEntry": "result",
    "Plan": "plan",
    "PlanTask": "plan",
    "TaskExecution": "result",
    "run_analysis": "analyst",
    "run_analysis_sync": "analyst",
    "stream_analysis": "analyst",
}

__all__ = [
    "AnalysisResult",
    "AnalysisSettings",
    "OutputEntry",
    "Plan",
    "PlanTask",
    "TaskExecution",
    "run_analysis",
    "run_analysis_sync",
    "stream_analysis",
]

if not TYPE_CHECKING:  # otherwise, a type checker would accept any name as exported
    __getattr__ = make_getattr(__name__, _HOMES)
