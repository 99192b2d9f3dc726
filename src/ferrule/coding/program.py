"""The coding agent's session with a person, or with nobody, and what it is made from; `opening.py` opens it.

`terminal/` shows it on a terminal, `cli/code.py` in lines and as JSON; `commands.py` has what is typed after a slash.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule.coding.agent import prepare_pipeline
from ferrule.coding.attached_files import FileNames, attach_files
from ferrule.coding.checkpoints import Checkpoints
from ferrule.coding.files.records import KnownFiles
from ferrule.coding.overview import describe_cut, find_last_question
from ferrule.coding.registry import make_hooks
from ferrule.errors import FerruleError
from ferrule.models.context_sizes import find_context_size
from ferrule.session.session import Session

if TYPE_CHECKING:
    from ferrule.agent.hooks import Hooks
    from ferrule.agent.pipeline import Pipeline
    from ferrule.agent.run import Run
    from ferrule.builtin_tools.shell_jobs import JobState
    from ferrule.coding.meter import Meter
    from ferrule.coding.workspace import Workspace
    from ferrule.conversation import Media, Text
    from ferrule.execution.profiles import Profile
    from ferrule.store.rows import ConversationSummary
    from ferrule.tools.registry import ToolLike

_LONGEST_COMMAND = 100


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
    server_environment: Mapping[str, str] | None = None
    """Variables for the servers of `servers` that are started by a command."""
    server_timeout: float = 30.0
    trusts_servers: bool = False
    """Whether what servers declare about their tools is trusted."""
    requires_servers: bool = False
    """Whether a server that can't be reached is an error."""
    allows_all: bool = False
    """Whether every call that the policy asks about is allowed."""
    context_limit: int | None = None
    """The size of the model's context in tokens, where it isn't known or isn't right."""
    shows_cost: bool = False
    """Whether the tokens, seconds and price of each turn are shown at its end."""
    attachments: tuple[Text | Media, ...] = ()
    """What goes to the model with the first question."""


@dataclass(slots=True)
class CodingSession:
    """A session of the coding agent in one workspace."""

    options: CodingOptions
    session: Session
    workspace: Workspace
    meter: Meter
    hooks: tuple[Hooks, ...] = ()
    """Hooks of the session, which another model gets too."""
    profile_before_plan: Profile = "ask"
    """The profile to return to from planning."""
    is_cut_off: bool = field(init=False)
    """Whether the last turn of the conversation was cut off, and `go_on` takes it up."""
    _ended: set[str] = field(default_factory=set)
    """The background jobs of whose end the person was told."""
    _names: FileNames = field(init=False)
    _unsaved: str = field(init=False)
    """Stands for the id of a conversation that isn't saved."""
    _known_as: str = field(init=False)
    """The id of the conversation after the last turn."""
    _known_files: KnownFiles = field(init=False)

    def __post_init__(self) -> None:
        self._names = FileNames(self.workspace)
        self._unsaved = _make_token()
        self.checkpoints.find_conversation = self._find_conversation
        self._known_files = KnownFiles(self.checkpoints.store / "known_files")
        self._enter_conversation()

    def _find_conversation(self) -> str:
        return self.session.autosave.conversation_id or self._unsaved

    def _enter_conversation(self) -> None:
        """Find what is known of the conversation that the session has now: it began, or was resumed."""
        self._known_as = self._find_conversation()
        self._known_files.load(self._known_as, self.workspace.files)
        self.is_cut_off = bool(self.describe_cut())

    @property
    def profile(self) -> Profile:
        """The profile in force."""
        return self.session.policy.profile or "ask"

    @property
    def checkpoints(self) -> Checkpoints:
        """What undoes turns."""
        checkpoints = self.workspace.checkpoints
        assert isinstance(checkpoints, Checkpoints)
        return checkpoints

    def describe_cut(self) -> str:
        """Describe where the last turn was cut off; empty if it is whole."""
        return describe_cut(self.session.conversation, self.session.permissions.journal)

    async def ask(self, question: str) -> Run:
        """Ask, with the files that the question names as `@path`, and show what happens.

        The open calls of a resumed conversation are answered as not run, or as interrupted, and sent with the question.
        Raises `SettingsError` for a file that can't be attached, and what `Session.ask` raises.
        """
        attached, missing = await asyncio.to_thread(attach_files, question, self.workspace, self.list_files)
        for notice in missing:
            self.session.renderer.notify(notice)
        if self.session.conversation.pending:
            self.session.renderer.notify(f"{self.describe_cut()}; not run again, and the model reads so")
            self.session.skip_pending()
        return await self._run_turn(question, self.session.ask(question, attached))

    async def go_on(self) -> Run:
        """Go on where the last turn was cut off. Raises what `Session.go_on` raises."""
        return await self._run_turn(find_last_question(self.session.conversation), self.session.go_on())

    async def _run_turn(self, label: str, turn: Coroutine[Any, Any, Run]) -> Run:
        """Run a turn, which can be undone by itself."""
        self.is_cut_off = False
        self.checkpoints.begin_turn(label)
        try:
            return await turn
        except FerruleError:
            self.is_cut_off = bool(self.describe_cut())
            raise
        finally:
            await self._end_turn()

    async def _end_turn(self) -> None:
        """Record what the turn changed."""
        await self.checkpoints.end_turn()
        await self._follow_conversation()
        for notice in (*self.checkpoints.take_announcements(), *self.take_notices()):
            self.session.renderer.notify(notice)

    async def _follow_conversation(self) -> None:
        """Keep the turns undoable, and what the model knows, under the id of the conversation.

        It gets one when it is first saved, and another one when it is compacted.
        """
        before, self._known_as = self._known_as, self._find_conversation()
        if before != self._known_as:
            await self.checkpoints.rename_conversation(before, self._known_as)
        if self._known_as != self._unsaved:
            await asyncio.to_thread(self._known_files.save, self._known_as, self.workspace.files)

    def change_profile(self, profile: Profile) -> None:
        """Use another profile from the next turn on; rules and earlier answers stay."""
        if profile == "plan" and self.profile != "plan":
            self.profile_before_plan = self.profile
        self.session.change_policy(replace(self.session.policy, profile=profile))

    async def find_context_size(self) -> None:
        """Find the size of the model's context, for the meter; it may be a server that says it."""
        self.meter.context_size = self.options.context_limit or await find_context_size(self.session.pipeline.model)

    def start_new(self) -> None:
        """Begin a new conversation; what was saved of the old one stays."""
        self.session.start_new()
        self.meter.start_conversation()
        self._unsaved = _make_token()
        self._enter_conversation()

    async def compact(self) -> int:
        """Replace the older part of the conversation by a summary; returns how many messages were left out.

        Raises what `Session.compact` raises.
        """
        run = await self.session.compact()
        self.meter.end_compaction(run)
        await self._follow_conversation()
        return sum(len(one.dropped) for one in run.compactions)

    def resume(self, name: str) -> None:
        """Go on with a saved conversation and its model. Raises `ConversationError`, and `ModelError` for its model."""
        self.session.resume(name)
        self._enter_conversation()
        self.meter.start_conversation()
        store, saved_id = self.session.autosave.store, self.session.autosave.conversation_id
        model = None if store is None or saved_id is None else store.find_model(saved_id)
        if model is not None and model != self.session.model_name:
            self.change_model(model)

    def take_notices(self) -> list[str]:
        """What the person wasn't told yet: background jobs that ended, files that somebody else changed."""
        ended = [job for job in self.workspace.jobs.list_states() if not job.is_running and job.name not in self._ended]
        self._ended.update(job.name for job in ended)
        jobs = [f"{describe_job(job)}; /jobs {job.name} shows its output" for job in ended]
        return [*self.workspace.files.take_notices(), *jobs]

    def list_running_jobs(self) -> list[str]:
        """Describe the background jobs that are running."""
        return [describe_job(job) for job in self.workspace.jobs.list_states() if job.is_running]

    def count_jobs(self) -> int:
        """How many background jobs are running."""
        return sum(job.is_running for job in self.workspace.jobs.list_states())

    def list_files(self) -> list[str]:
        """List the paths of files that can be attached, relative to the workspace. Called in a thread."""
        return self._names.list_names()

    def list_saved(self, limit: int) -> Sequence[ConversationSummary]:
        """List the saved conversations about this folder, the last changed first."""
        store = self.session.autosave.store
        return () if store is None else store.list(limit, folder=str(self.options.folder))

    def change_model(self, name: str) -> None:
        """Ask another model from the next question on, in the same conversation.

        Raises `ModelError` for a model that isn't known, lacks a key, or can't be the agent's.
        """
        pipeline = self.options.load_model(name)
        prepared = prepare_pipeline(pipeline, self.options.context_limit)
        self.session.change_model(prepared.hook(*make_hooks(self.workspace), *self.hooks))
        self.meter.context_size = self.options.context_limit


def describe_job(job: JobState) -> str:
    """Describe a background job on one line: its id, how it is going, and its command."""
    command = " ".join(job.command.split())
    return (
        f"{job.name} {job.status}: {command if len(command) <= _LONGEST_COMMAND else f'{command[:_LONGEST_COMMAND]}…'}"
    )


def _make_token() -> str:
    return f"unsaved-{os.urandom(8).hex()}"
