"""Every error that ferrule raises on purpose.

Each message says what was wrong, where, and what to do. Errors that a *model* is to read (a refusal,
a wrong argument) are results, not exceptions; `ToolRetry` and `ToolFailed` are how a tool asks for one.
"""


class FerruleError(Exception):
    """Base of all of them: catch this to catch whatever ferrule itself refuses."""


class ToolDefinitionError(FerruleError):
    """A function, method or schema can't become a tool; the message names the parameter and what to do."""


class RegistryError(FerruleError):
    """Tools that can't be offered together (a name twice), or a selection that names none."""


class ConversationError(FerruleError):
    """A conversation, or a file of one, that can't be: an orphan result, an unknown role, broken JSON."""


class ContextLengthError(ConversationError):
    """A conversation that is too long for a model's context and can't be shortened by whole turns."""


class DialectError(FerruleError):
    """An unknown dialect, or something that a dialect can't express, such as a call without a notation."""


class TokenizerError(FerruleError):
    """A tokenizer file that can't be read, or that lacks a control token a dialect needs."""


class EngineError(FerruleError):
    """An engine that failed, was closed, or was given an argument that it can't honour."""


class ModelError(FerruleError):
    """A model that can't be loaded, or can't do what was asked of it; the message names the model."""


class ProviderError(ModelError):
    """A provider refused a request or failed; `status` is its HTTP status, None where no answer came."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class StreamBroken(ProviderError):  # noqa: N818 - what happened, in the words of a log
    """A provider's answer stopped in the middle; what had come of it by then was passed on."""


class Overloaded(ModelError):  # noqa: N818 - the state that it tells of
    """More requests wait for one provider than its queue may hold."""


class ToolRequired(ModelError):  # noqa: N818 - what was asked for
    """A model had to call a tool and did not, although it was asked again."""


class PolicyError(FerruleError):
    """A policy, a rule or a policy file that can't be used; the message names what is wrong in it."""


class PolicyWarning(UserWarning):
    """A rule of a policy names a tool, or an argument, that isn't on offer; perhaps it is misspelt."""


class PluginError(FerruleError):
    """A plugin that can't be imported, or isn't what its group wants; the message names it and its package."""


class SettingsError(FerruleError):
    """A setting, or a file or option of a command, with a value that can't be used."""


class ToolRetry(FerruleError):  # noqa: N818 - it is a request to the model, in the words a tool's author reads
    """Raised by a tool: the call failed, and `hint` tells the model how to call again.

    The idea of two errors, *try again with this hint* and *final, tell the model*, is pydantic-ai's.
    """

    def __init__(self, hint: str) -> None:
        super().__init__(hint)
        self.hint = hint


class ToolFailed(FerruleError):  # noqa: N818 - see ToolRetry
    """Raised by a tool: the call failed for good, and `reason` is what the model is told."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class SandboxUnavailable(FerruleError):  # noqa: N818 - the state that it tells of
    """Nothing was run: a layer that the sandbox's tier promises is missing, or a canary reached what it must not."""


class SandboxInputError(FerruleError, ValueError):
    """Code, a command, inputs or limits that a sandbox can't use; the message says which. Nothing was run."""
