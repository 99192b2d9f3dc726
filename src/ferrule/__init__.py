"""Ferrule binds tools to language models.

The names that most programs need, each loaded when it is first used, so that `import ferrule` costs almost nothing.
Everything else is imported from its own module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule._util.lazy_exports import make_getattr

if TYPE_CHECKING:
    from ferrule.agent.hooks import Hooks, RunState
    from ferrule.agent.pipeline import Pipeline, model
    from ferrule.agent.run import Run, StreamedRun
    from ferrule.blobs import BlobStore
    from ferrule.builtin_tools import calculator, python_tool, shell_tool
    from ferrule.capabilities import Loss
    from ferrule.conversation import (
        Audio,
        Conversation,
        File,
        Image,
        MalformedCall,
        Message,
        Reasoning,
        Text,
        ToolCall,
        ToolOutput,
        ToolResult,
        assistant,
        system,
        user,
    )
    from ferrule.errors import (
        ArgumentsInvalid,
        ContextLengthError,
        ConversationError,
        DialectError,
        EngineError,
        FerruleError,
        ModelError,
        OutputInvalid,
        Overloaded,
        PluginError,
        PolicyError,
        PolicyWarning,
        ProviderError,
        RegistryError,
        RequestNotRecorded,
        SandboxInputError,
        SandboxUnavailable,
        SettingsError,
        StreamBroken,
        TokenizerError,
        ToolDefinitionError,
        ToolFailed,
        ToolRequired,
        ToolRetry,
    )
    from ferrule.events import (
        ArgumentsDelta,
        CallFinished,
        CallMalformed,
        CallStarted,
        ContextCompacted,
        Event,
        LossesReported,
        MessageFinished,
        ReasoningDelta,
        ResultReady,
        RunFinished,
        TextDelta,
        ToolProgress,
        ToolStarted,
        Usage,
    )
    from ferrule.execution import (
        Approver,
        Decision,
        Executor,
        FileJournal,
        Pending,
        Policy,
        Rule,
        call_tool,
    )
    from ferrule.models.naming import record
    from ferrule.models.protocol import Model, ModelSettings
    from ferrule.models.scripted import ScriptedModel
    from ferrule.session.terminal.approver import TerminalApprover
    from ferrule.store import Store
    from ferrule.tools.decorator import Tool, tool
    from ferrule.tools.intent import Diff, Effect, ImageRef, Intent
    from ferrule.tools.registry import ToolRegistry
    from ferrule.tools.scope import CallScope
    from ferrule.tools.toolset import Toolset
    from ferrule.toolspec import Annotations, ToolExample, ToolSpec

__version__ = "0.1.0"

_EXPORTS = {
    "agent.hooks": ("Hooks", "RunState"),
    "agent.pipeline": ("Pipeline", "model"),
    "agent.run": ("Run", "StreamedRun"),
    "blobs": ("BlobStore",),
    "builtin_tools": ("calculator", "python_tool", "shell_tool"),
    "capabilities": ("Loss",),
    "conversation": (
        "Audio",
        "Conversation",
        "File",
        "Image",
        "MalformedCall",
        "Message",
        "Reasoning",
        "Text",
        "ToolCall",
        "ToolOutput",
        "ToolResult",
        "assistant",
        "system",
        "user",
    ),
    "errors": (
        "ArgumentsInvalid",
        "ContextLengthError",
        "ConversationError",
        "DialectError",
        "EngineError",
        "FerruleError",
        "ModelError",
        "OutputInvalid",
        "Overloaded",
        "PluginError",
        "PolicyError",
        "PolicyWarning",
        "ProviderError",
        "RegistryError",
        "RequestNotRecorded",
        "SandboxInputError",
        "SandboxUnavailable",
        "SettingsError",
        "StreamBroken",
        "TokenizerError",
        "ToolDefinitionError",
        "ToolFailed",
        "ToolRequired",
        "ToolRetry",
    ),
    "events": (
        "ArgumentsDelta",
        "CallFinished",
        "CallMalformed",
        "CallStarted",
        "ContextCompacted",
        "Event",
        "LossesReported",
        "MessageFinished",
        "ReasoningDelta",
        "ResultReady",
        "RunFinished",
        "TextDelta",
        "ToolProgress",
        "ToolStarted",
        "Usage",
    ),
    "execution": (
        "Approver",
        "Decision",
        "Executor",
        "FileJournal",
        "Pending",
        "Policy",
        "Rule",
        "call_tool",
    ),
    "models.naming": ("record",),
    "models.protocol": (
        "Model",
        "ModelSettings",
    ),
    "models.scripted": ("ScriptedModel",),
    "session.terminal.approver": ("TerminalApprover",),
    "store": ("Store",),
    "tools.decorator": (
        "Tool",
        "tool",
    ),
    "tools.intent": (
        "Diff",
        "Effect",
        "ImageRef",
        "Intent",
    ),
    "tools.registry": ("ToolRegistry",),
    "tools.scope": ("CallScope",),
    "tools.toolset": ("Toolset",),
    "toolspec": (
        "Annotations",
        "ToolExample",
        "ToolSpec",
    ),
}
_HOMES = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = [
    "Annotations",
    "Approver",
    "ArgumentsDelta",
    "ArgumentsInvalid",
    "Audio",
    "BlobStore",
    "CallFinished",
    "CallMalformed",
    "CallScope",
    "CallStarted",
    "ContextCompacted",
    "ContextLengthError",
    "Conversation",
    "ConversationError",
    "Decision",
    "DialectError",
    "Diff",
    "Effect",
    "EngineError",
    "Event",
    "Executor",
    "FerruleError",
    "File",
    "FileJournal",
    "Hooks",
    "Image",
    "ImageRef",
    "Intent",
    "Loss",
    "LossesReported",
    "MalformedCall",
    "Message",
    "MessageFinished",
    "Model",
    "ModelError",
    "ModelSettings",
    "OutputInvalid",
    "Overloaded",
    "Pending",
    "Pipeline",
    "PluginError",
    "Policy",
    "PolicyError",
    "PolicyWarning",
    "ProviderError",
    "Reasoning",
    "ReasoningDelta",
    "RegistryError",
    "RequestNotRecorded",
    "ResultReady",
    "Rule",
    "Run",
    "RunFinished",
    "RunState",
    "SandboxInputError",
    "SandboxUnavailable",
    "ScriptedModel",
    "SettingsError",
    "Store",
    "StreamBroken",
    "StreamedRun",
    "TerminalApprover",
    "Text",
    "TextDelta",
    "TokenizerError",
    "Tool",
    "ToolCall",
    "ToolDefinitionError",
    "ToolExample",
    "ToolFailed",
    "ToolOutput",
    "ToolProgress",
    "ToolRegistry",
    "ToolRequired",
    "ToolResult",
    "ToolRetry",
    "ToolSpec",
    "ToolStarted",
    "Toolset",
    "Usage",
    "__version__",
    "assistant",
    "calculator",
    "call_tool",
    "model",
    "python_tool",
    "record",
    "shell_tool",
    "system",
    "tool",
    "user",
]


if not TYPE_CHECKING:  # otherwise, a type checker would accept any name as exported
    __getattr__ = make_getattr(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
