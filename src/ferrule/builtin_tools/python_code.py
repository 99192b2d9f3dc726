"""Python as a tool: code that a model writes runs contained, and its value, output and images come back.

A call says nothing but the code: which tier, what may be read and how much may be used is said by whoever makes the
tool. Contained code changes nothing outside of its own run, so the tool is `read_only` and the profiles `plan` and
`ask` let it run. With a sandbox that the user made without containment (`tier="none"`) it is not: then each call is an
effect `run`, which those profiles refuse or ask about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

from ferrule.builtin_tools.default_sandboxes import default_python
from ferrule.conversation import Image, Text
from ferrule.errors import FerruleError
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.intent import Effect, Intent
from ferrule.tools.scope import CallScope
from ferrule.toolspec import Annotations

if TYPE_CHECKING:
    from ferrule.sandbox.python import Mount, PythonSandbox

TIMEOUT: Final = 30.0
"""Seconds of one call, unless the tool's maker says otherwise."""
MEMORY: Final = 512 * 1024 * 1024
"""Bytes that one call may use beside the interpreter and its packages."""

CONTAINED: Final = Annotations(read_only=True, destructive=False, idempotent=True, open_world=False)
_DESCRIPTION: Final = (
    "Run Python code and get back what it prints, the value of its last line, and the figures that it draws. Each "
    "call starts anew. The packages that are installed can be imported; there is no network, and no files but the "
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
    mounts: Sequence[Mount] = (),
) -> Tool:
    """A tool that runs Python in `sandbox`, which whoever made it closes; by default in one of the process's own.

    `timeout` is in seconds, `memory` in bytes. Each call is given `inputs` anew: variables, and files by their names.
    `mounts` are files that the code reads without a copy, and can't change.
    """

    async def run(code: Code, scope: CallScope) -> list[Text | Image]:
        from ferrule.builtin_tools.python_results import convert_error, render_call

        used = default_python() if sandbox is None else sandbox
        try:
            seconds = limit_seconds(timeout, scope)
            done = await used.run(code, inputs, timeout=seconds, memory=memory, mounts=mounts)
        except FerruleError as error:
            raise convert_error(error) from error
        return await render_call(done, scope.blobs)

    at_hand = [*(inputs or ()), *(mount.shown_name for mount in mounts)]
    return tool(
        name=name,
        description=_DESCRIPTION + (f" These are at hand: {', '.join(at_hand)}." if at_hand else ""),
        annotations=CONTAINED if is_contained(sandbox) else Annotations(),
        intent=_intent_of(sandbox, mounts),
    )(run)


def preview_code(arguments: Mapping[str, Any]) -> Intent:
    """The intent of contained code: nothing outside, and the code to look at."""
    return Intent(preview=str(arguments["code"]))


def _intent_of(sandbox: PythonSandbox | None, mounts: Sequence[Mount]) -> Callable[[Mapping[str, Any]], Intent]:
    """What a call would do: nothing outside, besides reading what the sandbox was told to show."""
    paths = (*getattr(sandbox, "readable", ()), *(mount.path for mount in mounts))
    effects = [Effect("read", str(path)) for path in paths]
    if not is_contained(sandbox):
        effects.append(Effect("run", "python, not contained"))
    return lambda arguments: replace(preview_code(arguments), effects=tuple(effects))


def is_contained(sandbox: PythonSandbox | None) -> bool:
    """Whether a sandbox is one that contains: the default one always is."""
    return sandbox is None or sandbox.tier != "none"


def limit_seconds(timeout: float, scope: CallScope) -> float:
    """The time of a call, so that it ends before the caller's own time is up and its output isn't lost."""
    left = scope.seconds_left
    return timeout if left is None else max(0.05, min(timeout, left - 0.25))


python = python_tool()
"""Runs Python in the process's own sandbox, which is started at the first call."""
