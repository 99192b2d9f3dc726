"""A session used from Python: what holds from turn to turn, and what a turn leaves that is cut off."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from ferrule import Decision, Policy, ToolCall, ToolRegistry, calculator, model, tool
from ferrule.agent.hooks import Hooks, RunState
from ferrule.agent.run import Run
from ferrule.capabilities import Loss
from ferrule.cli.errors import run_command
from ferrule.errors import EngineError
from ferrule.events import Event, LossesReported, MessageFinished, ResultReady
from ferrule.execution import ApprovalRequest
from ferrule.execution.profiles import Profile
from ferrule.models.scripted import ScriptedModel
from ferrule.session.approvals import Permissions
from ferrule.session.persistence import StoreOptions, open_autosave
from ferrule.session.session import Session
from ferrule.session.terminal.renderer import TextRenderer
from ferrule.store import Store
from ferrule.tools.intent import Effect, Intent


@tool(name="send", origin="project")
def send(text: str) -> str:
    """Send a text."""
    return f"sent {text}"


class Log:
    """A front that keeps what it is shown and asked, in order, and answers every question alike."""

    def __init__(self, answer: Decision | None = None) -> None:
        self.lines: list[str] = []
        self._answer = answer or Decision.allow("front")

    def show(self, event: Event) -> None:
        if isinstance(event, MessageFinished):
            self.lines += [f"calls {call.id}" for call in event.message.calls]
        elif isinstance(event, ResultReady):
            self.lines.append(event.result.text)

    def clear(self) -> None:
        self.lines.append("clear")

    def finish(self, run: Run, /, conversation_id: str | None = None) -> None:
        self.lines.append(run.stopped)

    def notify(self, text: str) -> None:
        self.lines.append(f"notice: {text}")

    async def decide(self, request: ApprovalRequest) -> Decision:
        self.lines.append(f"asks {request.call.id}")
        return self._answer


def send_call(text: str) -> ToolCall:
    return ToolCall("call_1", "send", f'{{"text": "{text}"}}')


@tool(name="write", intent=lambda arguments: Intent((Effect("write", arguments["path"]),)))
def write(path: str) -> str:
    """Write a file."""
    Path(path).write_text("written")
    return "written"


def start_session(log: Log, *script: str | ToolCall, policy: Policy | None = None) -> Session:
    permissions = Permissions(policy or Policy(profile="ask"), log)
    return Session(model(ScriptedModel(*script)), [send], permissions=permissions, renderer=log)


async def test_always_holds_for_every_later_turn() -> None:
    log = Log(Decision.always("front"))
    session = start_session(log, send_call("a"), "Done.", send_call("b"), "Done again.")
    await session.ask("Send a.")
    await session.ask("Send b.")
    session.start_new()
    assert log.lines == [
        *("calls call_1", "clear", "asks call_1", "sent a", "done"),
        *("calls call_1", "sent b", "done"),
    ]
    assert session.policy.grants is not None
    assert [(rule.action, rule.tool) for rule in session.policy.grants.rules] == [("allow", "send")]


@pytest.mark.parametrize("profile", ["accept-edits", "auto"])
async def test_a_person_is_asked_about_what_lies_outside_of_the_workspace(profile: Profile, tmp_path: Path) -> None:
    workspace, beside = tmp_path / "work", tmp_path / "beside"
    workspace.mkdir()
    calls = [
        ToolCall(f"call_{path.name}", "write", json.dumps({"path": str(path)})) for path in (workspace / "a", beside)
    ]
    log = Log(Decision.deny("keep out", "front"))
    session = Session(
        model(ScriptedModel(calls, "Done.")), [write], renderer=log, workspace=workspace,
        permissions=Permissions(Policy(profile=profile), log),
    )  # fmt: skip
    await session.ask("Write both.")
    assert [line for line in log.lines if line.startswith("asks")] == ["asks call_beside"]
    assert ((workspace / "a").exists(), beside.exists()) == (True, False)


async def test_a_person_is_asked_in_each_turn_and_never_before_the_call_is_shown() -> None:
    log = Log()
    session = start_session(log, send_call("a"), "Done.", send_call("b"), "Done again.")
    await session.ask("Send a.")
    await session.ask("Send b.")
    turn = ["calls call_1", "clear", "asks call_1"]
    assert log.lines == [*turn, "sent a", "done", *turn, "sent b", "done"]


async def test_without_permissions_nobody_is_asked_and_the_front_is_told() -> None:
    log = Log()
    session = Session(model(ScriptedModel(send_call("a"), "No.")), [send], renderer=log)
    run = await session.ask("Send a.")
    assert run.stopped == "done"
    assert "needs approval, and nobody can be asked" in log.lines[2]
    assert log.lines[-1].startswith("notice: nobody could be asked for approval here")


class Unanswered(Log):
    """Waits for an answer that never comes."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asking = asyncio.Event()

    async def decide(self, request: ApprovalRequest) -> Decision:
        self.is_asking.set()
        await asyncio.Event().wait()
        return await super().decide(request)


async def test_a_cancelled_turn_answers_its_calls_and_the_session_goes_on() -> None:
    log = Unanswered()
    session = start_session(log, send_call("a"), "Hello.")
    turn = asyncio.create_task(session.ask("Send a."))
    await log.is_asking.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert log.lines[-1] == "cancelled"
    assert session.conversation.pending == ()
    assert [message.role for message in session.conversation.messages] == ["user", "assistant", "tool"]
    assert session.conversation.messages[-1].result.text == "error: not run: the run was stopped before this call"
    assert (await session.ask("Hello")).text == "Hello."


class Silent(ScriptedModel):
    """Never writes anything."""

    def __init__(self) -> None:
        super().__init__()
        self.was_asked = asyncio.Event()

    async def stream(self, *_asked: object) -> AsyncGenerator[Event, None]:
        self.was_asked.set()
        await asyncio.Event().wait()
        for event in ():
            yield event


async def test_a_question_that_was_cancelled_before_the_model_wrote_is_taken_back() -> None:
    silent = Silent()
    session = Session(model(silent), renderer=Log())
    turn = asyncio.create_task(session.ask("Hello"))
    await silent.was_asked.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert session.conversation.messages == ()


async def test_every_turn_is_saved_and_a_saved_conversation_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    log = Log()
    with open_autosave(StoreOptions(path)) as autosave:
        session = Session(model("echo"), renderer=log, autosave=autosave)
        await session.ask("One")
        await session.ask("Two")
        session.start_new()
        await session.ask("Three")
    with Store(path) as store:
        kept = {summary.title: summary for summary in store.list()}
    assert {title: summary.messages for title, summary in kept.items()} == {"One": 4, "Three": 2}
    with open_autosave(StoreOptions(path, resume=kept["One"].id)) as autosave:
        assert len(Session(model("echo"), renderer=log, autosave=autosave).conversation) == 4


async def test_a_question_is_saved_before_the_model_writes_and_withdrawn_if_nothing_followed(tmp_path: Path) -> None:
    path, silent = tmp_path / "kept.db", Silent()
    with open_autosave(StoreOptions(path)) as autosave, Store(path) as store:
        session = Session(model("echo"), renderer=Log(), autosave=autosave)
        for question, kept in (("Zero", 0), ("One", 2)):
            session.change_model(model(silent))
            silent.was_asked.clear()
            turn = asyncio.create_task(session.ask(f"{question}, which is cancelled"))
            await silent.was_asked.wait()
            (summary,) = store.list()
            saved = store.load(summary.id).conversation.messages
            assert (len(saved), saved[-1].text) == (kept + 1, f"{question}, which is cancelled")
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn
            assert [one.messages for one in store.list()] == ([kept] if kept else [])
            session.change_model(model("echo"))
            await session.ask(question)
        # The questions that were withdrawn have made no fork.
        (summary,) = store.list()
        messages = store.load(summary.id).conversation.messages
    assert [message.text for message in messages] == ["Zero", "Zero", "One", "One"]


def test_a_session_on_a_pipe_loads_neither_the_command_line_nor_rich() -> None:
    code = (
        "import asyncio, sys\nfrom ferrule import model\nfrom ferrule.session.session import Session\n"
        "asyncio.run(Session(model('echo')).ask('Hello'))\n"
        "print([name for name in ('typer', 'rich', 'ferrule.cli') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Hello\n[]\n"


class News(Hooks):
    """Tells the model something before each request."""

    comes_first = True

    async def before_request(self, state: RunState) -> None:
        state.say("news")


async def test_what_the_model_is_told_is_saved_before_it_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    saved: list[list[str]] = []

    class Watching(ScriptedModel):
        def stream(self, *arguments: Any, **settings: Any) -> Any:
            with Store(path, create=False) as store:
                (kept,) = store.list()
                saved.append([one.text for one in store.load(kept.id).conversation.messages])
            return super().stream(*arguments, **settings)

    with open_autosave(StoreOptions(path)) as autosave:
        pipeline = model(Watching(send_call("a"), "Done.")).hook(News())
        session = Session(pipeline, [send], permissions=Permissions(), renderer=Log(), autosave=autosave)
        await session.ask("Send a.")
    assert [texts[-1] for texts in saved] == ["news", "news"]


async def test_tools_may_come_as_a_registry() -> None:
    session = Session(model("embedded"), ToolRegistry([calculator]), renderer=Log())
    assert (await session.ask("What is 12 * 34?")).text == "12 × 34 is 408."


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Interrupts asyncio once, after it has installed its handler and before it resets its count of interrupts."""
    install, interrupted = signal.signal, list[int]()

    def install_and_interrupt(number: int, handler: Any) -> Any:
        previous = install(number, handler)
        if number == signal.SIGINT and handler is not signal.default_int_handler and not interrupted:
            interrupted.append(number)
            signal.raise_signal(signal.SIGINT)
        return previous

    monkeypatch.setattr(signal, "signal", install_and_interrupt)
    return interrupted


@pytest.mark.filterwarnings("ignore:coroutine 'sleep' was never awaited")
def test_ctrl_c_while_asyncio_installs_its_handler_ends_a_command_without_a_traceback(interrupted: list[int]) -> None:
    assert run_command(lambda: asyncio.run(asyncio.sleep(60))) == 130
    assert interrupted == [signal.SIGINT]


def test_an_answer_that_its_server_ended_is_not_called_a_loss_of_text(capsys: pytest.CaptureFixture[str]) -> None:
    losses = (Loss("image", "b1ff"), Loss("answer", "OpenAI ended the answer: content_filter"))
    TextRenderer().show(LossesReported(losses))
    assert capsys.readouterr().out == (
        "not preserved  image: b1ff\nincomplete  OpenAI ended the answer: content_filter\n"
    )


def test_an_error_that_hides_an_interrupt_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    def load() -> None:
        try:
            try:
                raise KeyboardInterrupt
            finally:  # as transformers does while it imports a module
                raise ModuleNotFoundError("Could not import module 'Qwen3ForCausalLM'.")
        except ModuleNotFoundError as error:
            raise EngineError("transformers can't load it") from error

    assert run_command(load) == 130
    assert capsys.readouterr().err == ""
