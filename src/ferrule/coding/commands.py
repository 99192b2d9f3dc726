"""What can be typed after a slash: `/model NAME`, `/undo` and the like, on a terminal and in lines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast, get_args

from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line, escape_text
from ferrule.coding.overview import describe_resumed
from ferrule.coding.program import describe_job
from ferrule.errors import SettingsError, ToolRetry
from ferrule.execution.profiles import Profile
from ferrule.session.project import describe_rule
from ferrule.session.slash_commands import describe_unknown_command, looks_like_command

if TYPE_CHECKING:
    from ferrule.coding.program import CodingSession

Lines: TypeAlias = list[str]
_LISTED = 20
_LONGEST_WAIT = 5.0
"""How long a server may take to say the size of its model's context, in seconds."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: how it is written, what it does, and the function that does it and returns lines for the person."""

    usage: str
    about: str
    run: Callable[[CodingSession, str], Awaitable[Lines]]
    is_quick: bool = False
    """Whether it can run while the model works."""

    @property
    def name(self) -> str:
        """The word after which its arguments come."""
        return self.usage.split()[0]


def is_command(line: str) -> bool:
    """Whether a line is meant as a command: `/sav x`, but neither `/etc/hosts what?` nor a line after a space."""
    word = line.partition(" ")[0].rstrip()
    return word in COMMANDS or word in _ALIASES or looks_like_command(line)


def find_command(line: str) -> tuple[Command, str]:
    """Find the command of a line, and its arguments. Raises `SettingsError` for an unknown one."""
    word, _, rest = line.strip().partition(" ")
    command = COMMANDS.get(_ALIASES.get(word, word))
    if command is None:
        raise SettingsError(describe_unknown_command(word, [*COMMANDS, *_ALIASES]))
    return command, rest.strip()


def is_quick(line: str) -> bool:
    """Whether a line is a command that can run while the model works."""
    word = line.split(maxsplit=1)[0]
    command = COMMANDS.get(_ALIASES.get(word, word))
    return command is not None and command.is_quick


async def run_command(coding: CodingSession, line: str) -> Lines:
    """Run the command of a line; returns what it says. Raises `FerruleError` and `OSError`."""
    command, rest = find_command(line)
    return await command.run(coding, rest)


async def _help(_: CodingSession, _rest: str) -> Lines:
    return list(_list_help())


def _list_help() -> Iterator[str]:
    entries = [(command.usage, command.about) for command in COMMANDS.values()]
    entries += [
        ("@path", "attaches a file to the question"),
        ('@"path with spaces"', "the same"),
        ("Alt-Enter, \\ Enter", "begins a new line"),
        ("Up, nothing typed", "takes back the question that was queued last, or an earlier line"),
        ("Ctrl-C", "stops the model; pressed twice, it leaves"),
        ("Ctrl-D", "leaves"),
        ("Ctrl-L, Ctrl-Z", "clears the screen; suspends the program"),
    ]
    width = max(len(usage) for usage, _ in entries)
    yield from (f"{usage:{width}}  {about}" for usage, about in entries)


async def _tools(coding: CodingSession, _: str) -> Lines:
    await coding.session.refresh_tools()
    specs = coding.session.registry.specs
    width = max((len(spec.name) for spec in specs), default=0)
    lines = []
    for spec in specs:
        about = spec.description.strip().partition("\n")[0]
        origin = "" if spec.origin == "code" else f" ({spec.origin})"
        lines.append(escape_line(f"{spec.name:{width}}  {about}{origin}"))
    return lines or ["no tools are offered"]


async def _policy(coding: CodingSession, name: str) -> Lines:
    if name:
        if name not in get_args(Profile):
            raise SettingsError(f"/policy {name}: expected one of {', '.join(get_args(Profile))}")
        coding.change_profile(cast("Profile", name))
    return list(_describe_policy(coding))


def _describe_policy(coding: CodingSession) -> Iterator[str]:
    policy = coding.session.policy
    yield f"profile {coding.profile}: {_PROFILES[coding.profile]}"
    granted = () if policy.grants is None else policy.grants.rules
    for head, rules in (("rule", policy.rules), ("allowed by an earlier answer", (*policy.always, *granted))):
        yield from (escape_line(f"{head}: {rule.action} {describe_rule(rule)}") for rule in rules)
    yield f"/policy NAME changes the profile for this session: {', '.join(get_args(Profile))}"


_PROFILES = {
    "plan": "reading is allowed, everything else refused",
    "ask": "reading is allowed, everything else asked",
    "accept-edits": "reading and writing in the workspace is allowed, the rest asked",
    "auto": "what stays in the workspace and destroys nothing is allowed, the rest asked",
    "all": "everything is allowed that no rule forbids",
}


async def _plan(coding: CodingSession, _: str) -> Lines:
    if coding.profile == "plan":
        coding.change_profile(coding.profile_before_plan)
        return [f"profile {coding.profile}: {_PROFILES[coding.profile]}"]
    coding.change_profile("plan")
    return ["profile plan: the model reads and plans, and changes nothing; /plan again returns"]


async def _model(coding: CodingSession, name: str) -> Lines:
    if name:
        await asyncio.to_thread(coding.change_model, name)
        await _measure_context(coding)
    return [escape_line(f"model {coding.session.model_name}")]


async def _measure_context(coding: CodingSession) -> None:
    """Find the size of another model's context, unless its server takes too long to say it."""
    with suppress(TimeoutError):
        await asyncio.wait_for(coding.find_context_size(), _LONGEST_WAIT)


async def _compact(coding: CodingSession, _: str) -> Lines:
    dropped = await coding.compact()
    if not dropped:
        return ["there is nothing to leave out yet"]
    return [f"{pluralize(dropped, 'message')} were replaced by a summary for the model; all of them stay saved"]


async def _jobs(coding: CodingSession, rest: str) -> Lines:
    jobs = coding.workspace.jobs
    words = rest.split()
    name = f"job_{words[-1]}" if words and words[-1].isdecimal() else "".join(words[-1:])
    try:
        if words[:1] == ["stop"] and len(words) == 2:
            return [escape_line(f"{name} {await jobs.stop(name)}")]
        if len(words) == 1 and words != ["stop"]:
            lines = escape_text(await jobs.read_tail(name)).splitlines()[-_LISTED:]
            return [f"  {line}" for line in lines] or [f"{name} has written nothing yet"]
    except ToolRetry as error:
        raise SettingsError(f"/jobs: {error}") from error
    if words:
        raise SettingsError("/jobs takes nothing, the id of a job whose output it shows, or `stop ID`")
    listed = [escape_line(describe_job(job)) for job in jobs.list_states()]
    return [*listed, "/jobs ID shows what one wrote, /jobs stop ID stops it"] if listed else ["no background jobs"]


async def _cost(coding: CodingSession, _: str) -> Lines:
    if coding.meter.context_size is None:
        await _measure_context(coding)
    return [coding.meter.describe()]


async def _undo(coding: CodingSession, rest: str) -> Lines:
    return str(await coding.checkpoints.undo(force=_is_forced("/undo", rest))).splitlines()


async def _redo(coding: CodingSession, rest: str) -> Lines:
    return str(await coding.checkpoints.redo(force=_is_forced("/redo", rest))).splitlines()


def _is_forced(command: str, rest: str) -> bool:
    if rest not in ("", "force"):
        raise SettingsError(f"{command} takes nothing, or `force` to overwrite what was changed since")
    return rest == "force"


async def _diff(coding: CodingSession, rest: str) -> Lines:
    if rest and not rest.isdecimal():
        raise SettingsError("/diff takes a number: 1 is the last turn that changed files, 2 the one before it")
    number = await _find_turn(coding, int(rest)) if rest else None
    changes = await coding.checkpoints.find_changes(number)
    if isinstance(changes, str):
        raise SettingsError(changes)
    turn = changes.turn
    if turn is None:
        return ["this conversation has changed no file"]
    if turn.status == "undone" and not rest:
        return [f"{turn.describe()} is undone; /redo makes its changes again, /diff 1 shows them"]
    return str(changes).splitlines()


async def _find_turn(coding: CodingSession, back: int) -> int:
    """Find the number of the last turn of this conversation, of the one before it, and so on."""
    conversation = coding.checkpoints.find_conversation()
    turns = [one for one in await coding.checkpoints.list_turns() if one.files and conversation in one.conversations]
    if not 1 <= back <= len(turns):
        raise SettingsError(f"/diff {back}: this conversation has changed files in {pluralize(len(turns), 'turn')}")
    return turns[-back].number


async def _new(coding: CodingSession, _: str) -> Lines:
    coding.start_new()
    return ["a new conversation; the old one stays saved"]


async def _resume(coding: CodingSession, name: str) -> Lines:
    if name:
        coding.resume(name)
        await _measure_context(coding)
        return describe_resumed(coding)
    found = coding.list_saved(_LISTED)
    if not found:
        return ["no conversation about this folder is saved"]
    shown = [f"{one.id}  {one.updated.astimezone():%Y-%m-%d %H:%M}  {escape_line(one.title)}" for one in found]
    return [*shown, "/resume ID continues one of them"]


async def _quit(_: CodingSession, _rest: str) -> Lines:
    raise EOFError


_ALL = (
    Command("/help", "lists this", _help, True),
    Command("/tools", "lists the tools", _tools, True),
    Command("/policy [PROFILE]", "shows what is allowed, or changes the profile", _policy),
    Command("/plan", "lets the model only read and plan; again: as before", _plan),
    Command("/model [NAME]", "shows the model, or changes it; the conversation stays", _model),
    Command("/undo [force]", "takes back what the last turn changed", _undo),
    Command("/redo [force]", "makes again what was undone last", _redo),
    Command("/diff [N]", "shows what the last turn changed, or the Nth last", _diff),
    Command("/compact", "replaces the older part of the conversation by a summary", _compact),
    Command("/jobs [[stop] ID]", "lists the background jobs, shows the output of one, or stops it", _jobs, True),
    Command("/cost", "shows the tokens, the price, and how full the context is", _cost, True),
    Command("/resume [ID]", "lists the saved conversations of this folder, or continues one", _resume),
    Command("/new", "begins another conversation, as /clear does; the old one stays saved", _new),
    Command("/quit", "leaves, as /exit does", _quit, True),
)
COMMANDS = {command.name: command for command in _ALL}
_ALIASES = {"/exit": "/quit", "/clear": "/new"}
"""What other programs call some of them."""
