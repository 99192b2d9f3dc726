"""Python that keeps its variables between calls, as a Toolset: one session per run of the pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ferrule.builtin_tools.python_code import (
    CONTAINED,
    MEMORY,
    TIMEOUT,
    Code,
    check_sandbox,
    default_python,
    is_contained,
    preview_code,
    read_given_mounts,
)
from ferrule.conversation import Image, Text
from ferrule.errors import FerruleError, SandboxInputError, ToolDefinitionError, ToolFailed
from ferrule.tools.decorator import tool
from ferrule.tools.scope import CallScope, limit_seconds
from ferrule.tools.toolset import Toolset

if TYPE_CHECKING:
    from pathlib import Path

    from ferrule.sandbox.python import Mount, PythonSandbox, SandboxSession

_STATEFUL = replace(CONTAINED, idempotent=False)


class PythonSession(Toolset):
    """Runs Python code, keeping variables and imports between calls.

    The session begins at the first call, in `sandbox` or the process's own, and ends when the Toolset is closed. It is
    contained like `ferrule.builtin_tools.python`, and so `read_only`: it changes only its own variables. `timeout` is
    in seconds per call, `memory` in bytes for the whole session. `inputs` are present from the start, as variables and
    files; `mounts` are files, as paths or `Mount`s, that the code reads without a copy. An instance belongs to one
    event loop.

    Raises `ToolDefinitionError` for a sandbox without containment, and `SandboxInputError` for what is no mount.
    """

    name = "python"
    description = "Python that keeps its variables"

    def __init__(
        self,
        sandbox: PythonSandbox | None = None,
        *,
        timeout: float = TIMEOUT,
        memory: int = MEMORY,
        inputs: Mapping[str, Any] | None = None,
        mounts: Sequence[Mount | Path | str] = (),
    ) -> None:
        check_sandbox(sandbox, timeout, inputs)
        if not is_contained(sandbox):
            raise ToolDefinitionError("a PythonSession is annotated as read-only, so its sandbox must be contained")
        self._sandbox = sandbox
        self._timeout = timeout
        self._memory = memory
        self._inputs = inputs
        self._mounts = read_given_mounts(mounts)
        self._session: SandboxSession | None = None
        self._turn = asyncio.Lock()

    @tool(annotations=_STATEFUL, serial=True, intent=preview_code)
    async def python(self, code: Code, scope: CallScope) -> list[Text | Image]:
        """Run Python code and get back what it prints, the value of its last line, and the figures that it draws.
        Variables and imports are kept from call to call. The packages that are installed can be imported; there is
        no network, and no files but the code's own.
        """
        from ferrule.builtin_tools.python_results import convert_error, render_call

        async with self._turn:
            try:
                session = await self._open_session()
                run = await session.run(code, timeout=limit_seconds(self._timeout, scope))
            except FerruleError as error:
                raise convert_error(error) from error
        return await render_call(run, scope.blobs)

    @tool(annotations=_STATEFUL, serial=True)
    async def python_undo(self) -> str:
        """Undo the last call of python: every variable is again as it was before that call."""
        async with self._turn:
            if self._session is None:
                raise ToolFailed("there is nothing to undo: no code was run")
            try:
                await self._session.rollback()
            except FerruleError as error:
                raise ToolFailed(str(error)) from error
        return "undone: the variables are as they were before the last call of python"

    async def close(self) -> None:
        """End the session and forget its variables."""
        session, self._session = self._session, None
        if session is not None:
            await session.aclose()

    async def _open_session(self) -> SandboxSession:
        if self._session is None:
            sandbox = default_python() if self._sandbox is None else self._sandbox
            session = await sandbox.session(memory=self._memory, mounts=self._mounts)
            # In a run of its own, so that undoing the first call doesn't remove the inputs.
            given = await session.run("", self._inputs) if self._inputs else None
            if given is not None and given.error is not None:
                await session.aclose()
                raise SandboxInputError(f"the inputs can't be loaded into the session: {given.error}")
            self._session = session
        return self._session
