"""The coding agent's session with a person, or with nobody: its model, tools, policy, journal and saved conversation.

`terminal/` shows it on a terminal, `cli/code.py` in lines and as JSON; `commands.py` has what is typed after a slash.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule._util.user_folders import find_state_folder
from ferrule.coding.agent import make_agent, prepare_pipeline
from ferrule.coding.meter import Meter, MeteredRenderer
from ferrule.coding.registry import tools as make_tools
from ferrule.execution import FileJournal, Policy
from ferrule.models.context_sizes import find_context_size
from ferrule.session.approvals import AllowAll, DenyAll, Permissions
from ferrule.session.persistence import StoreOptions, open_autosave
from ferrule.session.session import Session
from ferrule.session.terminal_output import print_warnings

if TYPE_CHECKING:
    from ferrule.agent.pipeline import Pipeline
    from ferrule.agent.run import Run
    from ferrule.conversation import Media, Text
    from ferrule.execution import Approver
    from ferrule.execution.profiles import Profile
    from ferrule.session.approvals import AnswerInput
    from ferrule.session.renderer import Renderer
    from ferrule.session.servers import SessionServers
    from ferrule.store.rows import ConversationSummary
    from ferrule.tools.registry import ToolLike

HINT = "allow calls by --profile accept-edits or auto, by the rules of --policy FILE, or all with --yes"


@dataclass(frozen=True, slots=True)
class CodingOptions:
    """What a session of the coding agent is made from."""

    folder: Path
    """The workspace."""
    model: str
    """The name of the model, for `load_model`."""
    load_model: Callable[[str], Pipeline[Any]]
    """Makes a pipeline with the settings of the session for a model's name."""
    added: tuple[Path, ...] = ()
    """Further folders whose files the tools may use."""
    tools: tuple[ToolLike, ...] = ()
    """Tools that are offered besides the agent's own."""
    profile: Profile | None = None
    """The profile; by default that of the policy file, or `ask`."""
    policy: Path | None = None
    """The file of rules."""
    journal: Path | None = None
    """The journal; by default a file for the workspace in the user's state folder."""
    store: Path | None = None
    """The store; by default the user's own."""
    resume: str | None = None
    """The id of the conversation to resume."""
    servers: tuple[str, ...] = ()
    """MCP servers, each by its command or address."""
    server_timeout: float = 30.0
    trusts_servers: bool = False
    """Whether what servers declare about their tools is trusted."""
    requires_servers: bool = False
    """Whether a server that can't be reached is an error."""
    allows_all: bool = False
    """Whether every call that the policy asks about is allowed."""
    context_limit: int | None = None
    """The size of the model's context in tokens, where it isn't known or isn't right."""
    attachments: tuple[Text | Media, ...] = ()
    """What goes to the model with the first question."""


@dataclass(slots=True)
class CodingSession:
    """A session of the coding agent in one workspace."""

    options: CodingOptions
    session: Session
    meter: Meter
    profile_before_plan: Profile = "ask"
    """The profile to return to from planning."""

    @property
    def profile(self) -> Profile:
        """The profile in force."""
        return self.session.policy.profile or "ask"

    async def ask(self, question: str) -> Run:
        """Ask, and show what happens. Raises what `Session.ask` raises."""
        return await self.session.ask(question)

    def change_profile(self, profile: Profile) -> None:
        """Use another profile from the next turn on; rules and earlier answers stay."""
        if profile == "plan" and self.profile != "plan":
            self.profile_before_plan = self.profile
        self.session.change_policy(replace(self.session.policy, profile=profile))

    async def find_context_size(self) -> None:
        """Find the size of the model's context, for the meter; it may be a server that says it."""
        self.meter.context_size = self.options.context_limit or await find_context_size(self.session.pipeline.model)

    def resume(self, name: str) -> None:
        """Go on with a saved conversation and its model. Raises `ConversationError`, and `ModelError` for its model."""
        self.session.resume(name)
        store, saved_id = self.session.autosave.store, self.session.autosave.conversation_id
        model = None if store is None or saved_id is None else store.find_model(saved_id)
        if model is not None and model != self.session.model_name:
            self.change_model(model)

    def list_files(self) -> list[str]:
        """List the paths of files that can be attached, relative to the workspace."""
        return []

    def list_saved(self, limit: int) -> Sequence[ConversationSummary]:
        """List the saved conversations about this folder, the last changed first."""
        store = self.session.autosave.store
        return () if store is None else store.list(limit, folder=str(self.options.folder))

    def change_model(self, name: str) -> None:
        """Ask another model from the next question on, in the same conversation.

        Raises `ModelError` for a model that isn't known, lacks a key, or can't be the agent's.
        """
        pipeline = self.options.load_model(name)
        self.session.change_model(prepare_pipeline(pipeline, self.options.context_limit))
        self.meter.context_size = self.options.context_limit


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
    async with AsyncExitStack() as opened:
        permissions = _open_permissions(options, approver, answers, opened)
        stored = StoreOptions(
            options.store, keep=True, resume=options.resume, model=options.model, folder=options.folder
        )
        autosave = opened.enter_context(open_autosave(stored))
        pipeline = make_agent(
            options.load_model(options.model), options.folder, added=options.added, context_limit=options.context_limit
        )
        opened.push_async_callback(pipeline.model.aclose)
        servers = await _open_servers(options, pipeline, permissions, opened)
        if servers is not None and options.trusts_servers:
            permissions = permissions.trust(*servers.origins)
        session = Session(
            pipeline,
            make_tools(options.folder).add(*options.tools),
            permissions=permissions,
            renderer=MeteredRenderer(renderer, meter),
            autosave=autosave,
            servers=servers,
            workspace=options.folder,
            attachments=options.attachments,
        )
        await session.refresh_tools()
        session.check_resumed()
        yield CodingSession(options, session, meter)


def find_journal(folder: Path) -> Path:
    """Find the journal of a workspace, in the user's state folder."""
    name = hashlib.sha256(str(folder).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return find_state_folder() / "code" / f"{name}.jsonl"


def _open_permissions(
    options: CodingOptions, approver: Approver | None, answers: AnswerInput | None, opened: AsyncExitStack
) -> Permissions:
    policy = Policy()
    if options.policy is not None:
        from ferrule.execution.policy_file import read_policy

        policy = read_policy(options.policy)
    policy = replace(policy, profile=options.profile or policy.profile or "ask")
    # Without it, a call that was interrupted would be run twice: so it is kept even if nobody asked for it.
    journal = FileJournal(options.journal or find_journal(options.folder), "ferrule code")
    opened.callback(journal.close)
    chosen = AllowAll() if options.allows_all else approver or DenyAll()
    return Permissions(policy, chosen, journal, answers, HINT)


async def _open_servers(
    options: CodingOptions, pipeline: Pipeline[Any], permissions: Permissions, opened: AsyncExitStack
) -> SessionServers | None:
    if not options.servers:
        return None
    from ferrule.session.server_requests import ServerRequests
    from ferrule.session.servers import SessionServers

    servers = SessionServers(options.servers, options.server_timeout, ServerRequests(pipeline, permissions))
    opened.enter_context(print_warnings("ferrule.mcp"))
    opened.push_async_callback(servers.close)
    await servers.open(options.requires_servers)
    return servers
