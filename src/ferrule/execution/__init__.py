"""Floor 5: runs every tool call: validates it, asks for permission if the policy says so, runs it, records it."""

from typing import TYPE_CHECKING

from ferrule.execution.always import SessionGrants
from ferrule.execution.approver import Approver
from ferrule.execution.decisions import ApprovalRequest, Decision, Pending
from ferrule.execution.error_results import make_cancelled_result, make_interrupted_result
from ferrule.execution.executor import Executor, call_tool
from ferrule.execution.journal import FileJournal, InterruptedCall, Journal, NullJournal, find_interrupted
from ferrule.execution.policy import Policy
from ferrule.execution.results import read_result_tool
from ferrule.execution.rules import Rule, Verdict
from ferrule.execution.run_call import CallWatch

if TYPE_CHECKING:
    from ferrule.execution.policy_file import parse_policy, read_policy

__all__ = [
    "ApprovalRequest",
    "Approver",
    "CallWatch",
    "Decision",
    "Executor",
    "FileJournal",
    "InterruptedCall",
    "Journal",
    "NullJournal",
    "Pending",
    "Policy",
    "Rule",
    "SessionGrants",
    "Verdict",
    "call_tool",
    "find_interrupted",
    "make_cancelled_result",
    "make_interrupted_result",
    "parse_policy",
    "read_policy",
    "read_result_tool",
]


def __getattr__(name: str) -> object:
    # Few programs read a policy from a file, and pydantic's models take long to import.
    if name not in ("parse_policy", "read_policy"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ferrule.execution import policy_file

    return getattr(policy_file, name)
