"""`tools`: everything that a coding agent uses, as a registry for any pipeline, server or command."""

from __future__ import annotations

import os
from pathlib import Path

from ferrule.builtin_tools import shell_tool
from ferrule.coding.sub_agents import make_task_tool
from ferrule.tools.registry import ToolRegistry

COMMAND_SECONDS = 30.0
"""The default timeout of a command: a model says when it expects a long one."""


def tools(workspace: str | os.PathLike[str] = ".") -> ToolRegistry:
    """Make the tools of a coding agent for one workspace: a folder.

    What they start is closed when the program ends. Raises `SandboxInputError` for a folder that doesn't exist.
    """
    folder = Path(workspace)
    return ToolRegistry([shell_tool(folder, name="bash", timeout=COMMAND_SECONDS), make_task_tool(folder.resolve())])
