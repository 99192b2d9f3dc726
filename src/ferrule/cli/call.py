"""`ferrule call`: call a tool through the executor."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferrule.cli.options import APPROVAL_HINT, AsJson, JournalFile, Plugins, PolicyFile, ToolFolders, Yes

if TYPE_CHECKING:
    from ferrule.conversation import ToolCall, ToolResult
    from ferrule.events import ToolProgress
    from ferrule.execution import Policy
    from ferrule.session.approvals import Permissions
    from ferrule.tools.registry import ToolRegistry


def call(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    tool: Annotated[
        str, typer.Argument(help="Its name; all that follows are its arguments: --NAME VALUE. Options go before it.")
    ],
    *,
    tools: ToolFolders = None,
    plugins: Plugins = False,
    json_arguments: Annotated[
        str | None, typer.Option(metavar="OBJECT", help="The arguments as a JSON object.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write images of the result here.")] = None,
    as_json: AsJson = False,
    yes: Yes = False,
    policy: PolicyFile = None,
    journal: JournalFile = None,
) -> None:
    """Call a tool through the executor.

    The exit status is 1 if the call fails, 2 for invalid arguments.
    """
    import asyncio

    from ferrule.cli.tool_sources import collect_tools
    from ferrule.execution.tool_output import route_tool_output
    from ferrule.session.approvals import open_permissions

    with open_permissions(yes, policy, journal, APPROVAL_HINT) as permissions:
        registry = collect_tools(tools or [], plugins)
        parsed = parse_call(registry, tool, context, json_arguments)
        only_it = replace(permissions, policy=leave_out_others(permissions.policy, tool, registry))
        with route_tool_output():
            result = asyncio.run(run_call(registry.only(tool), parsed, only_it))
    print_result(result, out, as_json)
    permissions.warn_of_denials()
    if result.is_error:
        raise typer.Exit(2 if result.status == "invalid" else 1)


def parse_call(registry: ToolRegistry, name: str, context: typer.Context, given: str | None) -> ToolCall:
    """Parse a call of a tool from what follows it on the command line, `context.args`, and from `given`, a JSON object.

    Raises `SettingsError` for an unknown tool, arguments that can't be parsed, or an option of the command among them.
    """
    from ferrule.cli.tool_options import parse_tool_options
    from ferrule.conversation import ToolCall
    from ferrule.errors import SettingsError

    tool = registry.get(name)
    if tool is None:
        near = registry.find_nearest(name)
        advice = f"the nearest: {', '.join(near)}" if near else f"on offer: {', '.join(registry.names)}"
        late = next(filter(None, (_describe_late_option(context, option) for option in context.args)), "")
        raise SettingsError(f"unknown tool {name!r}; {advice}" + (late and f"; {late}"))

    def refuse_own_option(option: str) -> None:
        if late := _describe_late_option(context, option):
            raise SettingsError(f"{name} has no argument {option}; {late}")

    parsed = _parse_json_arguments(given)
    added = parse_tool_options(context.args, tool.parameters, refuse_own_option)
    both = [argument for argument in added if argument in parsed]
    if both:
        raise SettingsError(f"--{both[0]} is given twice: as an option, and in --json-arguments")
    return ToolCall("call_1", name, json.dumps({**parsed, **added}, ensure_ascii=False))


def _describe_late_option(context: typer.Context, option: str) -> str:
    """Say where an option of the command goes that follows the tool; "" for what is none of its options."""
    option = option.partition("=")[0]
    if not any(option in one.opts for one in context.command.params) and option not in context.help_option_names:
        return ""
    place = "SERVER" if "server" in context.params else "the tool"
    path = context.command_path
    return f"options of `{path}` go before {place}: {path} {option} …"


def leave_out_others(policy: Policy, name: str, registry: ToolRegistry) -> Policy:
    """Leave out a policy's rules for other tools: one tool is called, and a rule that matches none is reported."""
    others = [spec for spec in registry.specs if spec.name != name]
    [called] = registry.only(name).specs
    kept = tuple(rule for rule in policy.rules if rule.names(called) or not any(map(rule.names, others)))
    return replace(policy, rules=kept)


async def run_call(registry: ToolRegistry, call: ToolCall, permissions: Permissions) -> ToolResult:
    """Run a call, showing its progress on a terminal."""
    from ferrule.conversation import ToolResult
    from ferrule.execution import Executor
    from ferrule.tools.scope import CallScope

    async with registry.open() as bound:
        # No model reads the result: it goes to a person or a file, whole.
        executor = Executor(
            bound, policy=permissions.policy, approver=permissions.approver, journal=permissions.journal, limit=None
        )
        result = await executor.run(call, CallScope(emit=_print_progress, workspace=Path.cwd()))
    assert isinstance(result, ToolResult), "an executor with on_ask='deny' never pauses"
    return result


def _print_progress(progress: ToolProgress) -> None:
    from ferrule.transcript import summarize_result

    if sys.stderr.isatty():
        share = "" if progress.fraction is None else f"{progress.fraction:.0%} "
        print(f"… {share}{summarize_result(progress.text)}", file=sys.stderr)


def _parse_json_arguments(given: str | None) -> dict[str, object]:
    from ferrule.errors import SettingsError

    if given is None:
        return {}
    try:
        value = json.loads(given)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"--json-arguments is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise SettingsError('--json-arguments must be a JSON object, such as \'{"expression": "2+2"}\'')
    return value


def print_result(result: ToolResult, folder: Path | None, as_json: bool) -> None:
    """Print a result; errors go to stderr. Images are written to `folder`, named by their hash.

    Raises `OSError` if an image can't be written.
    """
    from ferrule._util.terminal_text import escape_json, escape_text
    from ferrule.conversation import Text
    from ferrule.session.renderer import result_to_json
    from ferrule.session.terminal.output import print_notice
    from ferrule.transcript import describe_image

    files = {} if folder is None else _write_images(result, folder)
    if as_json:
        data = result_to_json(result) | ({"files": list(files.values())} if files else {})
        print(escape_json(data))
        return
    if result.status == "invalid":
        wrong = [line.removeprefix("error: ").removeprefix("- ") for line in result.text.splitlines()]
        print_notice("; ".join(wrong).replace(":; ", ": ", 1))
        return
    stream = sys.stderr if result.is_error else sys.stdout
    for part in result.content:
        if isinstance(part, Text):
            print(escape_text(part.text) if stream.isatty() else part.text, file=stream)
        else:
            print(files.get(part.hash) or f"{describe_image(part)}; --out FOLDER writes it", file=stream)


def _write_images(result: ToolResult, folder: Path) -> dict[str, str]:
    """Write the images of a result to a folder; returns their paths by hash."""
    import mimetypes

    from ferrule._util.output_files import write_output
    from ferrule.conversation import Image

    files: dict[str, str] = {}
    for part in result.content:
        if isinstance(part, Image):
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{part.hash}{mimetypes.guess_extension(part.media_type) or '.bin'}"
            write_output(path, part.data)
            files[part.hash] = str(path)
    return files
