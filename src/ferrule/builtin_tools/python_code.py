"""Python as a tool: a model's code runs contained, and its value, output and images are returned.

The only argument of a call is the code; tier, readable files and limits are set where the tool is made. Contained code
changes nothing outside of its own run, so the tool is `read_only`, and the profiles `plan` and `ask` allow it. In a
sandbox without containment (`tier="none"`) each call has an effect `run`, which those profiles deny or ask about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

from ferrule._util.background import make_once
from ferrule.conversation import Image, Text
from ferrule.errors import FerruleError, ToolDefinitionError
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.intent import Effect, Intent
from ferrule.tools.scope import CallScope, limit_seconds
from ferrule.toolspec import Annotations

if TYPE_CHECKING:
    from pathlib import Path

    from ferrule.sandbox.python import Mount, PythonSandbox

TIMEOUT: Final = 30.0
"""The default timeout of a call, in seconds."""
MEMORY: Final = 512 * 1024 * 1024
"""The default limit of a call, in bytes, in addition to the interpreter and its packages."""

CONTAINED: Final = Annotations(read_only=True, destructive=False, idempotent=True, open_world=False)
_DESCRIPTION: Final = (
    "Run Python code and get back what it prints, the value of its last line, and the figures that it draws. Each "
    "call starts fresh. The packages that are installed can be imported; there is no network, and no files but the "
    "code's own."
)
Code = Annotated[str, "The code; the value of its last line comes back, as in a notebook"]


def python_tool(
    sandbox: PythonSandbox | None = None,
    *,
    name: str = "python",
    timeout: float = TIMEOUT,
    memory: int = MEMORY,
    inputs: Mapping[str, Any] | None = None,
    mounts: Sequence[Mount | Path | str] = (),
) -> Tool:
    """Make a tool that runs Python in `sandbox`, by default the process's own. The caller closes a given sandbox.

    `timeout` is in seconds, `memory` in bytes. Each call gets new copies of `inputs`: variables, and files by name.
    `mounts` are files, as paths or `Mount`s, that the code can read without a copy, and can't change. Raises
    `SandboxInputError` for any other mount.
    """
    check_sandbox(sandbox, timeout, inputs)
    files = read_given_mounts(mounts)

    async def run(code: Code, scope: CallScope) -> list[Text | Image]:
        from ferrule.builtin_tools.python_results import convert_error, render_call

        used = default_python() if sandbox is None else sandbox
        try:
            seconds = limit_seconds(timeout, scope)
            done = await used.run(code, inputs, timeout=seconds, memory=memory, mounts=files)
        except FerruleError as error:
            raise convert_error(error) from error
        return await render_call(done, scope.blobs)

    at_hand = [*(inputs or ()), *(mount.shown_name for mount in files)]
    return tool(
        name=name,
        description=_DESCRIPTION + (f" These are at hand: {', '.join(at_hand)}." if at_hand else ""),
        annotations=CONTAINED if is_contained(sandbox) else Annotations(),
        intent=_make_intent(sandbox, files),
    )(run)


def check_sandbox(sandbox: object, timeout: float, inputs: object) -> None:
    """Raise `ToolDefinitionError` for what is no sandbox, and for a timeout or inputs that no call could have."""
    if sandbox is not None and not hasattr(sandbox, "tier"):
        raise ToolDefinitionError(
            f"the sandbox must be a PythonSandbox, such as PythonSandbox(tier='none'), not {sandbox!r}"
        )
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise ToolDefinitionError(f"timeout must be seconds, not {timeout!r}")
    if not isinstance(inputs, Mapping | None):
        raise ToolDefinitionError(f"inputs must be a dict of variables and files by name, not {inputs!r}")


def read_given_mounts(mounts: Sequence[Mount | Path | str]) -> tuple[Mount, ...]:
    """Read mounts; the sandbox is imported only if there are any. Raises `SandboxInputError`."""
    if not mounts:
        return ()
    from ferrule.sandbox.python.mounts import read_mounts

    return read_mounts(mounts)


def preview_code(arguments: Mapping[str, Any]) -> Intent:
    """Make the intent of contained code: no effects outside, and the code as preview."""
    return Intent(preview=str(arguments["code"]))


def _make_intent(sandbox: PythonSandbox | None, mounts: Sequence[Mount]) -> Callable[[Mapping[str, Any]], Intent]:
    """Make the intent function: the effects are reading what the sandbox shows, and running if it isn't contained."""
    paths = (*getattr(sandbox, "readable", ()), *(mount.path for mount in mounts))
    effects = [Effect("read", str(path)) for path in paths]
    if not is_contained(sandbox):
        effects.append(Effect("run", "python, not contained"))
    return lambda arguments: replace(preview_code(arguments), effects=tuple(effects))


def is_contained(sandbox: PythonSandbox | None) -> bool:
    """Whether a sandbox contains code; the default one always does."""
    return sandbox is None or sandbox.tier != "none"


def _make_sandbox() -> PythonSandbox:
    from ferrule.sandbox.python import PythonSandbox

    return PythonSandbox()


default_python = make_once(_make_sandbox)
"""Returns the process's own `PythonSandbox`, with default options."""

python = python_tool()
"""Runs Python in the process's own sandbox, which is created at the first call."""
