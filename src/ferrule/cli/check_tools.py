"""`ferrule tools check`: all problems of tool files in one run, and with `--run` the examples as real calls."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule.cli.tool_sources import CONTAINED, load_path_or_builtin

if TYPE_CHECKING:
    from ferrule.conversation import ToolResult
    from ferrule.execution import Executor
    from ferrule.session.approvals import Permissions
    from ferrule.tools.contract import ToolContract
    from ferrule.tools.decorator import Tool
    from ferrule.tools.registry import ToolRegistry
    from ferrule.toolspec import JSONSchema, ToolExample

_MOST_SHOWN = 100
"""Characters of an expected result and of the one that came, in a problem."""


@dataclass(frozen=True, slots=True)
class ToolFileProblem:
    """What is wrong in a file; `line` is that of the tool, 0 if it is unknown."""

    path: Path
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}" if self.line else f"{self.path}: {self.reason}"


@dataclass(slots=True)
class ToolFileCheck:
    """What a check found: the tools that can be offered, all problems, and how many examples were run."""

    names: list[str] = field(default_factory=list)
    contracts: list[ToolContract] = field(default_factory=list)
    problems: list[ToolFileProblem] = field(default_factory=list)
    run_count: int = 0


def check_paths(paths: Iterable[Path], permissions: Permissions | None = None) -> ToolFileCheck:
    """Check the tools of files and folders; with `permissions`, their examples are called through the executor.

    Raises `SettingsError` for a path that doesn't exist.
    """
    import asyncio

    from ferrule.builtin_tools import calculator
    from ferrule.errors import SettingsError
    from ferrule.tools.contract import ToolContract

    check = ToolFileCheck(contracts=[ToolContract.of(calculator)])
    owners: dict[str, str] = {calculator.name: "ferrule itself"}
    for path in paths:
        if not path.exists() and str(path) not in CONTAINED:
            raise SettingsError(f"no such file or folder: {str(path)!r}")
        for file, registry in _load_registries(path, check):
            for tool in registry.tools:
                check.problems += _check_tool(tool, file)
                if tool.name in owners:
                    taken = f"the name {tool.name!r} is taken by {owners[tool.name]}; give another by name="
                    check.problems.append(ToolFileProblem(file, _find_line(tool), taken))
                else:
                    owners[tool.name] = f"{file}:{_find_line(tool)}"
                    check.names.append(tool.name)
                    check.contracts.append(ToolContract.of(tool))
            if permissions is not None and any(tool.examples for tool in registry.tools):
                asyncio.run(_run_examples(registry, file, permissions, check))
    return check


def check_contracts(check: ToolFileCheck, file: Path) -> None:
    """Add to the problems what breaks the contracts of the tools in `file`, an earlier `ferrule tools --json`.

    Raises `SettingsError` for another file, and `OSError`.
    """
    from ferrule.builtin_tools import calculator
    from ferrule.errors import SettingsError
    from ferrule.tools.contract import find_broken_contracts, read_contract

    earlier = read_contract(file.read_bytes(), str(file))
    if {one.name for one in earlier} == {calculator.name} and calculator.name not in check.names:
        raise SettingsError(
            f"{file}: has only the calculator, which every list has; name the others when you write it: "
            f"ferrule tools --json FILE|FOLDER > {file}"
        )
    broken = find_broken_contracts(earlier, check.contracts)
    check.problems += [ToolFileProblem(file, 0, reason) for reason in broken]


def _load_registries(path: Path, check: ToolFileCheck) -> Iterator[tuple[Path, ToolRegistry]]:
    """Load what each file offers, as a registry of its own; a file that can't be loaded is a problem of the check."""
    from ferrule.errors import FerruleError
    from ferrule.tools.discovery import DiscoveryProblem, discover_tools, load_tool_file
    from ferrule.tools.registry import ToolRegistry

    if not path.exists():
        yield path, ToolRegistry([load_path_or_builtin(path)])
        return
    entries: Iterable[tuple[Path, Any] | DiscoveryProblem]
    try:
        entries = discover_tools(path) if path.is_dir() else [(path, item) for item in load_tool_file(path)]
    except FerruleError as error:
        check.problems.append(ToolFileProblem(path, 0, str(error).removeprefix(f"{path}: ")))
        return
    for entry in entries:
        if isinstance(entry, DiscoveryProblem):
            check.problems.append(ToolFileProblem(entry.path, 0, entry.reason))
            continue
        file, item = entry
        try:
            registry = ToolRegistry.from_discovered(item)
        except FerruleError as error:
            check.problems.append(ToolFileProblem(file, 0, str(error)))
        else:
            yield file, registry


def _check_tool(tool: Tool, file: Path) -> Iterator[ToolFileProblem]:
    from ferrule.errors import FerruleError

    line = _find_line(tool)
    if not tool.description.strip():
        yield ToolFileProblem(file, line, f"{tool.name} has no description; write a docstring")
    parameters = tool.parameters
    for name, schema in parameters.get("properties", {}).items():
        if not schema.get("description"):
            yield ToolFileProblem(
                file, line, f"the parameter {name!r} of {tool.name} has no description; describe it in the docstring"
            )
        if reason := _find_wrong_default(schema, parameters):
            yield ToolFileProblem(file, line, f"the default of {name!r} of {tool.name} {reason}")
    for number, example in enumerate(tool.examples, 1):
        try:
            tool.bind(example.arguments)
        except (FerruleError, TypeError, ValueError) as error:
            yield ToolFileProblem(file, line, f"example {number} of {tool.name}: {_join_lines(str(error))}")


def _find_wrong_default(schema: Any, root: JSONSchema) -> str:
    """Why a model that writes the default of a parameter would be refused; empty if it wouldn't be."""
    if not isinstance(schema, Mapping) or "default" not in schema:
        return ""
    from ferrule.tools.argument_errors import describe_value
    from ferrule.tools.contract import make_check
    from ferrule.tools.schema_description import describe_schema

    if make_check(schema, root, if_unknown=True)(schema["default"]):
        return ""
    return f"is {describe_value(schema['default'])}, which doesn't fit its type: {describe_schema(schema, root)}"


def _find_line(tool: Tool) -> int:
    code = getattr(inspect.unwrap(tool.function), "__code__", None)
    return getattr(code, "co_firstlineno", 0)


async def _run_examples(registry: ToolRegistry, file: Path, permissions: Permissions, check: ToolFileCheck) -> None:
    from ferrule.execution import Executor

    try:
        async with registry.open() as bound:
            executor = Executor(
                bound, policy=permissions.policy, approver=permissions.approver, journal=permissions.journal
            )
            for tool in bound.tools:
                for number, example in enumerate(tool.examples, 1):
                    reason = await _run_example(executor, tool, example, f"example_{number}")
                    check.run_count += 1
                    if reason:
                        about = f"example {number} of {tool.name}: {reason}"
                        check.problems.append(ToolFileProblem(file, _find_line(tool), about))
    except Exception as error:  # noqa: BLE001 - a Toolset's own code opens and closes it
        check.problems.append(ToolFileProblem(file, 0, f"its Toolset can't be opened: {type(error).__name__}: {error}"))


async def _run_example(executor: Executor, tool: Tool, example: ToolExample, call_id: str) -> str:
    """Call a tool as the example says; returns what is wrong with the result, empty if nothing is.

    Arguments that the tool refuses are reported without running it, see `_check_tool`.
    """
    import json

    from ferrule.conversation import ToolCall, ToolResult
    from ferrule.tools.scope import CallScope

    try:
        arguments = json.dumps(dict(example.arguments), ensure_ascii=False)
    except (TypeError, ValueError):
        return ""
    scope = CallScope(blobs=executor.blobs, workspace=Path.cwd())
    result = await executor.run(ToolCall(call_id, tool.name, arguments), scope)
    assert isinstance(result, ToolResult), "an executor with on_ask='deny' never pauses"
    if result.status == "invalid":
        return ""
    if result.is_error:
        return _join_lines(result.text.removeprefix("error: "))
    return _compare(result, example.result)


def _compare(result: ToolResult, expected: Any) -> str:
    from ferrule.errors import ToolFailed
    from ferrule.execution.results import make_parts

    if expected is ...:
        return ""
    try:
        content = make_parts(expected)
    except ToolFailed as error:
        return f"its expected result can't be one: {error.reason}"
    if result.content == content:
        return ""
    text = "\n".join(getattr(part, "text", "an image") for part in content)
    return f"expected {_shorten(text)}, got {_shorten(result.text)}"


def _shorten(text: str) -> str:
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…")


def _join_lines(text: str) -> str:
    lines: Sequence[str] = [line.strip().removeprefix("- ") for line in text.splitlines() if line.strip()]
    return "; ".join(lines).replace(":; ", ": ")
