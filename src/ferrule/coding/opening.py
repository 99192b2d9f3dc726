"""Opens a session of the coding agent: workspace, project file, tools, policy, servers, saved conversation.

What the project's own files would allow, start or load counts only after the person trusted them; the questions are
asked here, before anything of it is used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule._util.terminal_text import escape_line
from ferrule._util.user_folders import find_state_folder, name_after_folder
from ferrule._util.word_folding import fold_listed
from ferrule.coding.agent import make_agent
from ferrule.coding.announcements import NoticeHook
from ferrule.coding.checkpoints import Checkpoints
from ferrule.coding.meter import Meter, MeteredRenderer
from ferrule.coding.program import CodingOptions, CodingSession
from ferrule.coding.project_tools import ProjectTools, find_project_tools
from ferrule.coding.registry import make_hooks
from ferrule.coding.registry import tools as make_tools
from ferrule.coding.workspace import Workspace
from ferrule.errors import ConversationError, FerruleError, SettingsError
from ferrule.execution import FileJournal
from ferrule.execution.always import SessionGrants
from ferrule.session.approvals import AllowAll, DenyAll, Permissions
from ferrule.session.cost import CostRenderer
from ferrule.session.persistence import Autosave, StoreOptions, open_autosave
from ferrule.session.project import Project, load_project
from ferrule.session.renderer import JsonRenderer
from ferrule.session.saved_rules import load_saved_rules, save_always
from ferrule.session.session import Session
from ferrule.session.terminal.approver import TerminalApprover
from ferrule.session.terminal.output import print_warnings
from ferrule.session.trust import is_refused, refuse

if TYPE_CHECKING:
    from ferrule.agent.hooks import Hooks
    from ferrule.agent.pipeline import Pipeline
    from ferrule.execution import Approver, Policy, Rule
    from ferrule.session.approvals import AnswerInput
    from ferrule.session.renderer import Renderer
    from ferrule.session.servers import SessionServers

_HINTS = {
    "plan": "allow calls by another --profile than plan, by the rules of --policy FILE, or all with --yes",
    "accept-edits": "allow calls by --profile auto, by the rules of --policy FILE, or all with --yes",
    "auto": "the profile auto asks about these; allow them by the rules of --policy FILE, or all with --yes",
}
"""How calls can be allowed that a profile asks about; for any other profile, `_HINT`."""
_HINT = "allow calls by --profile accept-edits or auto, by the rules of --policy FILE, or all with --yes"


@asynccontextmanager
async def open_coding_session(
    options: CodingOptions,
    renderer: Renderer,
    approver: Approver | None = None,
    answers: AnswerInput | None = None,
) -> AsyncIterator[CodingSession]:
    """Open a session; without an `approver` nobody can be asked, and `answers` is what it reads.

    Raises `FerruleError` and `OSError` for options that can't be used.
    """
    meter = Meter(options.context_limit)
    shown: Renderer = MeteredRenderer(renderer, meter)
    hooks: tuple[Hooks, ...] = ()
    if options.shows_cost:
        shown = costs = CostRenderer(shown, as_json=isinstance(renderer, JsonRenderer))
        hooks = (costs,)
    async with AsyncExitStack() as opened:
        project = load_project(options.folder)
        if options.allows_all or not isinstance(approver, TerminalApprover):
            project.check_readable()
        project = await _trust_project(project, approver, shown)
        workspace = _open_workspace(options, project, opened)
        hooks += (NoticeHook(workspace.files.take_notices, shown.notify),)
        found = await _trust_tools(find_project_tools(workspace, project), approver, shown)
        permissions = _open_permissions(options, project, approver, answers, shown, opened)
        autosave = _open_autosave(options, shown, opened)
        limit = options.context_limit or project.code.context_limit
        pipeline = make_agent(
            options.load_model(options.model), workspace.folder, added=workspace.added, context_limit=limit
        ).hook(*make_hooks(workspace), *hooks)
        opened.push_async_callback(pipeline.model.aclose)
        servers = await _open_servers(options, project, pipeline, permissions, opened)
        if servers is not None and options.trusts_servers:
            permissions = permissions.trust(*servers.origins)
        session = Session(
            pipeline,
            make_tools(workspace, test_command=project.code.test_command).add(found.registry, *options.tools),
            permissions=permissions,
            renderer=shown,
            autosave=autosave,
            servers=servers,
            workspace=options.folder,
            attachments=options.attachments,
        )
        await session.refresh_tools()
        session.check_resumed()
        coding = CodingSession(replace(options, context_limit=limit), session, workspace, meter, hooks)
        try:
            yield coding
        finally:
            for job in coding.list_running_jobs():
                shown.notify(f"stopped, as the program ends: {escape_line(job)}")


def find_journal(folder: Path) -> Path:
    """Find the journal of a workspace, in the user's state folder."""
    return find_state_folder() / "code" / f"{name_after_folder(folder)}.jsonl"


async def _trust_project(project: Project, approver: Approver | None, shown: Renderer) -> Project:
    """Ask whether the project's `ferrule.toml` is trusted, if it grants something."""
    for notice in project.notices:
        shown.notify(notice)
    lines, own = project.list_untrusted(), project.own
    try:
        if lines and own is not None and not is_refused("project", own.path, own.digest):
            answer = await _confirm(approver, ["The project's ferrule.toml:", *lines], "Trust it?")
            if answer:
                return project.trust()
            if answer is not None:
                refuse("project", own.path, own.digest)
    except (FerruleError, OSError) as error:
        shown.notify(f"{error}; the project's ferrule.toml is not trusted")
    return project


async def _trust_tools(found: ProjectTools, approver: Approver | None, shown: Renderer) -> ProjectTools:
    """Ask whether the project's tool files are trusted; say what doesn't count."""
    lines, files = found.list_untrusted(), found.untrusted
    try:
        if lines and files is not None and not is_refused("tools", files.folder, files.digest):
            answer = await _confirm(approver, ["The project's tool files:", *lines], "Trust them?")
            if answer:
                found = found.trust()
            elif answer is not None:
                refuse("tools", files.folder, files.digest)
    except (FerruleError, OSError) as error:
        shown.notify(str(error))
    for line in (*found.problems, *found.describe_untrusted()):
        shown.notify(line)
    return found


async def _confirm(approver: Approver | None, lines: Sequence[str], question: str) -> bool | None:
    """Ask the person who is asked about calls; None where nobody can be asked, or there is no answer."""
    if not isinstance(approver, TerminalApprover):
        return None
    async with approver.take_turn():
        width = approver.display.width - 2
        pieces = [piece for line in lines[1:] for piece in fold_listed(escape_line(line), width)]
        approver.say(escape_line(lines[0]), *(f"  {piece}" for piece in pieces))
        while True:
            line = await approver.ask(f"{question} [y]es, [n]o:")
            if line is None:
                return None
            answer = line.strip().casefold()
            if answer in ("y", "yes", "n", "no"):
                return answer.startswith("y")


def _open_workspace(options: CodingOptions, project: Project, opened: AsyncExitStack) -> Workspace:
    workspace = Workspace(options.folder, (*options.added, *project.folders), visible=project.visible)
    checkpoints = Checkpoints(options.folder, access=workspace.access)
    workspace.checkpoints = checkpoints
    opened.push_async_callback(checkpoints.aclose)
    opened.push_async_callback(workspace.aclose)
    return workspace


def _open_permissions(
    options: CodingOptions,
    project: Project,
    approver: Approver | None,
    answers: AnswerInput | None,
    shown: Renderer,
    opened: AsyncExitStack,
) -> Permissions:
    given: Policy | None = None
    if options.policy is not None:
        from ferrule.execution.policy_file import read_policy

        given = read_policy(options.policy)
    always = _load_always(options.folder, shown)
    grants = SessionGrants(save=lambda answer: save_always(options.folder, [answer]))
    policy = project.make_policy(given, options.profile, always, grants)
    journal = _open_journal(options, shown, opened)
    chosen = AllowAll() if options.allows_all else approver or DenyAll()
    return Permissions(policy, chosen, journal, answers, _HINTS.get(policy.profile or "ask", _HINT))


def _load_always(folder: Path, shown: Renderer) -> tuple[Rule, ...]:
    """The rules of saved "always" answers; none if they can't be read, so that more is asked."""
    try:
        return load_saved_rules(folder)
    except (SettingsError, OSError) as error:
        shown.notify(f'{error}; until that is mended, saved answers of the kind "always" don\'t count')
        return ()


def _open_autosave(options: CodingOptions, shown: Renderer, opened: AsyncExitStack) -> Autosave:
    """Open the store. The user's own is no reason not to work: without it, the conversation isn't saved."""
    stored = StoreOptions(options.store, True, options.resume, options.model, options.folder)
    try:
        return opened.enter_context(open_autosave(stored))
    except (ConversationError, OSError) as error:
        if options.store is not None or options.resume is not None:
            raise
        shown.notify(f"this conversation is not saved, and can't be continued later: {_explain(error)}")
        return Autosave()


def _open_journal(options: CodingOptions, shown: Renderer, opened: AsyncExitStack) -> FileJournal | None:
    """Open the journal. Without it, a call that is interrupted would be run again: so it is kept by default."""
    try:
        journal = FileJournal(options.journal or find_journal(options.folder), "ferrule code")
    except (OSError, RuntimeError) as error:  # no rights, or no home
        if options.journal is not None:
            raise
        shown.notify(f"calls are not recorded, so one that is interrupted may run again: {_explain(error)}")
        return None
    opened.callback(journal.close)
    return journal


def _explain(error: Exception) -> str:
    """Explain an error for a person: of the operating system's, the path and the reason, without its number."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


async def _open_servers(
    options: CodingOptions,
    project: Project,
    pipeline: Pipeline[Any],
    permissions: Permissions,
    opened: AsyncExitStack,
) -> SessionServers | None:
    if not options.servers and not project.servers:
        return None
    from ferrule.session.server_requests import ServerRequests
    from ferrule.session.servers import SessionServers

    requests = ServerRequests(pipeline, permissions)
    servers = SessionServers(
        options.servers, options.server_timeout, requests, project.servers, options.server_environment
    )
    opened.enter_context(print_warnings("ferrule.mcp"))
    opened.push_async_callback(servers.close)
    await servers.open(options.requires_servers)
    return servers
