"""Floor 3: the one door for calls, and who may go through it."""

from ferrule.execution.approver import Approver, TerminalApprover
from ferrule.execution.decisions import Decision, Pending, Request
from ferrule.execution.executor import Executor
from ferrule.execution.journal import FileJournal, Interrupted, Journal, NullJournal, interrupted
from ferrule.execution.policy import Policy, Rule, Verdict
from ferrule.execution.policy_file import policy_from, read_policy
from ferrule.execution.read_result import read_result_tool
from ferrule.execution.words import cancelled_result, interrupted_result

__all__ = [
    "Approver",
    "Decision",
    "Executor",
    "FileJournal",
    "Interrupted",
    "Journal",
    "NullJournal",
    "Pending",
    "Policy",
    "Request",
    "Rule",
    "TerminalApprover",
    "Verdict",
    "cancelled_result",
    "interrupted",
    "interrupted_result",
    "policy_from",
    "read_policy",
    "read_result_tool",
]
