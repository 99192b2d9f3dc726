"""Every error that ferrule raises deliberately.

Each message says what was wrong, where, and what to do. Errors for a *model* to read (a refusal, a wrong argument) are
results, not exceptions; tools raise `ToolRetry` and `ToolFailed` to return one.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

advise_commands: ContextVar[bool] = ContextVar("advise_commands", default=False)
"""Whether errors advise commands of a shell instead of Python: the command line sets this."""


def choose_advice(in_python: str, in_commands: str) -> str:
    """Choose what an error tells its reader to do: in a program, or at the command line."""
    return in_commands if advise_commands.get() else in_python


class FerruleError(Exception):
    """Base of all of them: catch this to catch every error of ferrule's own."""

    run: Any = None
    """The `Run` that it ended, with the conversation so far, if it ended one."""


class ToolDefinitionError(FerruleError):
    """A function, method or schema can't become a tool; the message names the parameter and what to do."""


class RegistryError(FerruleError):
    """Tools that can't be offered together (a duplicate name), or a selection without matches."""


class ConversationError(FerruleError):
    """An invalid conversation, or file of one: an orphan result, an unknown role, broken JSON."""


class ContextLengthError(ConversationError):
    """A conversation that is too long for a model's context and can't be shortened by whole turns."""


class DialectError(FerruleError):
    """An unknown dialect, or something that a dialect can't express, such as a call without a notation."""


class TokenizerError(FerruleError):
    """A tokenizer file that can't be read, or that lacks a control token that a dialect needs."""


class EngineError(FerruleError):
    """An engine that failed, was closed, or doesn't support an argument."""


class ModelError(FerruleError):
    """A model that can't be loaded, or can't do what was requested; the message names the model."""


class ProviderError(ModelError):
    """A provider refused a request or failed; `status` is its HTTP status, None if there was no response."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class StreamBroken(ProviderError):  # noqa: N818 - an event, not an error class
    """A provider's answer stopped in the middle; what had arrived was passed on."""


class Overloaded(ModelError):  # noqa: N818 - a state
    """More requests wait for one provider than its queue may hold."""


class RequestNotRecorded(ModelError):  # noqa: N818 - a state
    """A recording has no answer to a request; the message says how the nearest recorded one differs."""


class ToolRequired(ModelError):  # noqa: N818 - a requirement
    """A model had to call a tool and did not, even when asked again."""


class OutputInvalid(FerruleError):  # noqa: N818 - it says what the output is
    """The answer still isn't of the requested type after the retries; `text` is the last answer."""

    def __init__(self, message: str, text: str = "") -> None:
        super().__init__(message)
        self.text = text


@dataclass(frozen=True, slots=True)
class ArgumentProblem:
    """One wrong field: its path (`stops[2].city`), the value given (empty if that adds nothing), and what is wrong."""

    field: str
    given: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: got {self.given}; {self.reason}" if self.given else f"{self.field}: {self.reason}"


class ArgumentsInvalid(FerruleError):  # noqa: N818 - it says what the arguments are, as the result's status does
    """The arguments of a call don't fit its tool; the text names each wrong field, one per line."""

    def __init__(self, problems: Iterable[ArgumentProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("Wrong arguments:\n" + "\n".join(f"- {problem}" for problem in self.problems))

    def __reduce__(self) -> tuple[type[ArgumentsInvalid], tuple[tuple[ArgumentProblem, ...]]]:
        return type(self), (self.problems,)


class PolicyError(FerruleError):
    """An invalid policy, rule or policy file; the message says what is wrong."""


class PolicyWarning(UserWarning):
    """A rule of a policy names a tool, or an argument, that isn't on offer; it may be misspelt."""


class PluginError(FerruleError):
    """A plugin that can't be imported, or isn't what its group requires; the message names it and its package."""


class SettingsError(FerruleError):
    """A setting, or a file or option of a command, with an invalid value."""


class ToolRetry(FerruleError):  # noqa: N818 - a request to the model, as a tool's author reads it
    """Raised by a tool: the call failed, and `hint` tells the model how to call again.

    The idea of two errors, *try again with this hint* and *final, tell the model*, is pydantic-ai's.
    """

    def __init__(self, hint: str) -> None:
        super().__init__(hint)
        self.hint = hint


class ToolFailed(FerruleError):  # noqa: N818 - see ToolRetry
    """Raised by a tool: the call failed permanently, and `reason` is shown to the model."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class SandboxUnavailable(FerruleError):  # noqa: N818 - a state
    """Nothing was run: a layer that the sandbox's tier promises is missing, or a canary escaped."""


class SandboxInputError(FerruleError, ValueError):
    """Code, a command, inputs or limits that a sandbox can't use; the message says which. Nothing was run."""


class DataError(FerruleError):
    """A data source that can't be read; the message names the file, what is wrong with it, and what to do."""


class FileAccessRefused(FerruleError):  # noqa: N818 - an event
    """A file tool was refused a path; the message names the path, why, and what to do. Nothing was read or written."""
