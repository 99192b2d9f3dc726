"""Ferrule binds tools to language models.

The names that most programs need, each loaded when it is first asked for, so that `import ferrule` costs next to
nothing. Everything else is imported from the module that it lives in.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferrule.conversation import (
        Conversation,
        Image,
        Message,
        Reasoning,
        Text,
        ToolCall,
        ToolResult,
    )
    from ferrule.errors import FerruleError, ToolFailed, ToolRetry
    from ferrule.execution import Approver, Decision, Executor, FileJournal, Pending, Policy, Rule, TerminalApprover
    from ferrule.intent import Effect, Intent
    from ferrule.models.protocol import Model, ModelSettings
    from ferrule.pipeline import Pipeline, Run, model
    from ferrule.registry import ToolRegistry
    from ferrule.schema import ArgumentsInvalid
    from ferrule.scope import CallScope
    from ferrule.tool import Tool, tool
    from ferrule.tools import calculator
    from ferrule.toolset import Toolset
    from ferrule.toolspec import Annotations, ToolSpec

__version__ = "0.1.0"

_HOMES = {
    "Annotations": "toolspec",
    "Approver": "execution",
    "ArgumentsInvalid": "schema",
    "CallScope": "scope",
    "Conversation": "conversation",
    "Decision": "execution",
    "Effect": "intent",
    "Executor": "execution",
    "FerruleError": "errors",
    "FileJournal": "execution",
    "Image": "conversation",
    "Intent": "intent",
    "Message": "conversation",
    "Model": "models.protocol",
    "ModelSettings": "models.protocol",
    "Pending": "execution",
    "Pipeline": "pipeline",
    "Policy": "execution",
    "Reasoning": "conversation",
    "Rule": "execution",
    "Run": "pipeline",
    "TerminalApprover": "execution",
    "Text": "conversation",
    "Tool": "tool",
    "ToolCall": "conversation",
    "ToolFailed": "errors",
    "ToolRegistry": "registry",
    "ToolResult": "conversation",
    "ToolRetry": "errors",
    "ToolSpec": "toolspec",
    "Toolset": "toolset",
    "calculator": "tools",
    "model": "pipeline",
    "tool": "tool",
}

__all__ = [
    "Annotations",
    "Approver",
    "ArgumentsInvalid",
    "CallScope",
    "Conversation",
    "Decision",
    "Effect",
    "Executor",
    "FerruleError",
    "FileJournal",
    "Image",
    "Intent",
    "Message",
    "Model",
    "ModelSettings",
    "Pending",
    "Pipeline",
    "Policy",
    "Reasoning",
    "Rule",
    "Run",
    "TerminalApprover",
    "Text",
    "Tool",
    "ToolCall",
    "ToolFailed",
    "ToolRegistry",
    "ToolResult",
    "ToolRetry",
    "ToolSpec",
    "Toolset",
    "__version__",
    "calculator",
    "model",
    "tool",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """Keeps `ferrule.tool` the decorator.

    Python puts a submodule into its package under the module's name when it is imported, which would put
    the module `ferrule.tool` in the decorator's place. `from ferrule.tool import …` is not affected.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name == "tool" and isinstance(value, ModuleType):
            value = value.tool
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
