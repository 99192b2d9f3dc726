"""Arguments that can't be meant are refused at once, and the message says what to give instead."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ferrule import (
    CallScope,
    Conversation,
    ConversationError,
    Decision,
    DialectError,
    Effect,
    Executor,
    FerruleError,
    FileJournal,
    Intent,
    Pending,
    Policy,
    ProviderError,
    RegistryError,
    Rule,
    Store,
    Tool,
    ToolCall,
    ToolDefinitionError,
    ToolRegistry,
    assistant,
    model,
    python_tool,
    record,
    shell_tool,
    system,
    tool,
    user,
)
from ferrule.errors import PolicyError, SettingsError
from ferrule.execution import ApprovalRequest
from ferrule.models.prices import configure_prices
from ferrule.models.scripted import ScriptedModel
from ferrule.session.terminal.approver import TerminalApprover
from tables import each_case

ECHO = model("echo").chat("?")


def plain(state: object) -> object:
    return state


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: ECHO.parse_as("int"), "parse_as can't use the text 'int'"),
    (lambda: ECHO.parse_as(lambda x: x), "parse_as can't use the function"),
    (lambda: ECHO.parse_as(int, retries=-1), "retries must be a whole number, 0 or more, not -1"),
    (lambda: model(None), "takes a name such as 'openai:gpt-5' or a Model object, not None"),  # type: ignore[arg-type]
    (lambda: model(ScriptedModel), "takes a name .* or a Model object, not <class"),  # type: ignore[arg-type]
    (lambda: ECHO.run_many_sync(-1), "number of runs, 0 or more, not -1"),
    (lambda: ECHO.run_many_sync(1, errors="ignore"), "errors must be 'raise' or 'keep', not 'ignore'"),  # type: ignore[arg-type]
    (lambda: ECHO.using(approver=TerminalApprover), "can't be the class TerminalApprover; give TerminalApprover"),  # type: ignore[arg-type]
    (lambda: configure_prices(5), "prices must be a mapping of models to prices, or the path of a file, not 5"),  # type: ignore[arg-type]
    (lambda: ECHO.using(force=True).run_sync(), "force=True requires a call, and there are no tools"),
    (lambda: ECHO.hook(plain), "plain can't be used as hooks: give a class or an object with the async method"),  # type: ignore[arg-type]
    (lambda: ECHO.then(3), r"then\(\) takes functions of a run, not 3"),  # type: ignore[arg-type]
    (lambda: ECHO.system(lambda: "x"), r"system\(\) takes functions of a run's state, and .* one argument"),  # type: ignore[arg-type, misc]
    (lambda: ScriptedModel(lambda: "x"), "a script takes functions of the conversation, and .* one argument"),  # type: ignore[arg-type, misc]
    (lambda: Store(3), "Store takes the path of a file, such as 'conversations.db', not 3"),  # type: ignore[arg-type]
    (lambda: ECHO.map([print]), r"map\(\) takes functions of a list of runs, not \[<built-in"),  # type: ignore[arg-type]
    (
        lambda: ECHO.watch(lambda: None),
        "functions of a run, and .*<lambda> can't be called with one argument: too many",
    ),  # type: ignore[misc, arg-type]
    (lambda: ECHO.parse_as([int]), r"parse_as takes a type, such as list\[int\] or a pydantic model, not \[<class"),
    (lambda: ECHO.parse_as(None), "parse_as takes a type, .* not None"),
    (lambda: model(ECHO), "not a pipeline; give its model, pipeline.model"),  # type: ignore[arg-type]
    (lambda: model("echo", fallback=[3]), r"model\(\) takes a name .* or a Model object, not 3"),  # type: ignore[list-item]
    (
        lambda: model(ScriptedModel(), api_key="x"),
        "api_key=… is for a model given by name, not for the object 'scripted'",
    ),
    (lambda: ECHO.run_many_sync(1, concurrency="2"), "concurrency must be a whole number of at least 1, not '2'"),  # type: ignore[arg-type]
    (lambda: ECHO.using(approver=3), r"the method decide\(\), or be a function of the request, not 3"),  # type: ignore[arg-type]
    (lambda: ECHO.using(approver=lambda: True), "can't be called with one argument"),  # type: ignore[misc, arg-type]
    (lambda: ECHO.using(journal="calls"), r"journal must be a Journal, such as FileJournal\(path\), not 'calls'"),  # type: ignore[arg-type]
    (lambda: ECHO.using(journal=FileJournal), r"journal must be a Journal, such as FileJournal\(path\), not <class"),  # type: ignore[arg-type]
    (lambda: ECHO.using(blobs="b"), r"blobs must be a BlobStore, such as BlobStore\(folder\), not 'b'"),  # type: ignore[arg-type]
    (lambda: ECHO.using(workspace=3), "workspace must be the path of a folder, not 3"),  # type: ignore[arg-type]
    (
        lambda: ECHO.using(choice=look),
        "choice must be 'auto', 'required', 'none' or the name of a tool, not <Tool look",
    ),  # type: ignore[arg-type]
    (lambda: ECHO.using(force="look"), r"force must be True or False \(choice= names a tool\), not 'look'"),  # type: ignore[arg-type]
    (lambda: ECHO.using(mode=None), "mode must be 'auto', 'api' or the name of a notation, not None"),  # type: ignore[arg-type]
    (lambda: ECHO.using(mode="API"), "unknown mode 'API'; did you mean api"),
    (
        lambda: ScriptedModel(3),
        "a script takes texts, ToolCalls, .*functions of the conversation and exceptions, not 3",
    ),  # type: ignore[arg-type]
    (lambda: ScriptedModel({"role": "assistant"}), "a script takes texts, .* not {'role'"),  # type: ignore[arg-type]
    (lambda: ScriptedModel(user("Hello")), "assistant messages, .* not Message"),
    (lambda: Executor(ToolRegistry(), journal="calls"), "the journal of an Executor must be a Journal"),  # type: ignore[arg-type]
    (lambda: Executor(ToolRegistry(), on_ask="ask"), "on_ask must be 'deny' or 'pause', not 'ask'"),  # type: ignore[arg-type]
    (lambda: record("/nowhere/x.jsonl", 3), "or a Model object, not 3"),  # type: ignore[call-overload]
]


@tool
def look(place: str) -> str:
    """Look somewhere."""
    return place


OTHERS: list[tuple[Callable[[], Any], type[FerruleError], str]] = [
    (lambda: ECHO.using(mode="nativ"), DialectError, "did you mean native"),
    (lambda: ToolRegistry(look), RegistryError, r"a list of tools, as in ToolRegistry\(\[f\]\), not <Tool look"),  # type: ignore[arg-type]
    (
        lambda: ToolRegistry(ToolRegistry([look])),
        RegistryError,
        r"as in ToolRegistry\(\[f\]\), not <ToolRegistry of look>",
    ),
    (lambda: ToolRegistry(None), RegistryError, "a ToolRegistry takes a list of tools"),  # type: ignore[arg-type]
    (lambda: ToolRegistry([look]).only(look), RegistryError, r"names and patterns as texts, .* not <Tool look"),  # type: ignore[arg-type]
    (lambda: ToolRegistry([look]).prefixed(3), RegistryError, "prefixed takes a text"),  # type: ignore[arg-type]
    (lambda: ToolRegistry([look]).renamed(["look"]), RegistryError, "renamed takes a dict of names"),  # type: ignore[arg-type]
    (lambda: ToolRegistry([look]).renamed({"look": 3}), ToolDefinitionError, "the tool 3: a name is 1 to 64"),  # type: ignore[dict-item]
    (
        lambda: tool(annotations={"read_only": True})(look.function),
        ToolDefinitionError,
        r"Annotations\(read_only=…\), not {",
    ),  # type: ignore[arg-type]
    (lambda: tool(origin=3)(look.function), ToolDefinitionError, "origin must be a text"),  # type: ignore[arg-type]
    (lambda: Tool.from_schema("a", "", {"type": "object"}, None), ToolDefinitionError, "a function that is called"),  # type: ignore[arg-type]
    (lambda: python_tool("none"), ToolDefinitionError, "must be a PythonSandbox"),  # type: ignore[arg-type]
    (lambda: python_tool(timeout="3"), ToolDefinitionError, "timeout must be seconds, not '3'"),  # type: ignore[arg-type]
    (lambda: python_tool(inputs=["x"]), ToolDefinitionError, "inputs must be a dict"),  # type: ignore[arg-type]
    (lambda: shell_tool(3), ToolDefinitionError, "must be a folder or a ShellSandbox, not 3"),  # type: ignore[arg-type]
    (lambda: Executor([look]), RegistryError, "an Executor takes an opened registry"),  # type: ignore[arg-type]
    (lambda: Decision.edit('{"city": "Rome"}'), PolicyError, "takes the new arguments as a dict"),  # type: ignore[arg-type]
    (lambda: Decision.deny(3), PolicyError, "the reason of a decision must be a text, not 3"),  # type: ignore[arg-type]
    (
        lambda: Pending(CALL, "why", REQUEST).decide(True),
        PolicyError,
        r"a Decision, such as Decision.allow\(\), not True",
    ),  # type: ignore[arg-type]
    (lambda: Policy().judge("look", {}), PolicyError, "a policy judges a Tool or a ToolSpec, .* not 'look'"),  # type: ignore[arg-type]
    (lambda: Effect("delete", "x"), PolicyError, "must be read, write, run or net, not 'delete'"),  # type: ignore[arg-type]
    (lambda: Intent("write"), PolicyError, "an Intent takes a tuple of Effects, not 'write'"),  # type: ignore[arg-type]
    (lambda: ECHO.run_sync(decisions=[1]), PolicyError, r"a dict of call ids to Decisions, not \[1\]"),  # type: ignore[arg-type]
    (lambda: STORE.save(TALK, title=3), ConversationError, "title must be a text, not the int 3"),  # type: ignore[arg-type]
    (lambda: STORE.load(None), ConversationError, r"an id is a text, as save\(\) returns it, not None"),  # type: ignore[arg-type]
    (lambda: STORE.search(3), ConversationError, "search takes a text"),  # type: ignore[arg-type]
    (lambda: STORE.fork(STORE.save(TALK), "1"), ConversationError, "can't be forked after 1"),  # type: ignore[arg-type]
    (lambda: STORE.save(TALK, decisions={"a": True}), PolicyError, "a Decision is saved, .* not True"),  # type: ignore[dict-item]
    (lambda: STORE.save(TALK, decisions=[True]), PolicyError, "decisions must be a dict"),  # type: ignore[arg-type]
    (lambda: STORE.save(TALK, pending=[CALL]), ConversationError, "pending takes what run.pending has"),  # type: ignore[list-item]
    (lambda: STORE.resume_sync(STORE.save(TALK), look, decisions=True), PolicyError, "decisions must be a dict"),  # type: ignore[arg-type]
    (lambda: STORE.resume_sync(STORE.save(TALK), look, journal="x"), ConversationError, "journal must be a Journal"),  # type: ignore[arg-type]
]
CALL = ToolCall("a", "look", {"place": "here"})
REQUEST = ApprovalRequest(CALL, "look", {}, None, "", None, "")
TALK = Conversation((user("Look."), assistant(CALL)))
STORE = Store(":memory:")


@each_case(("give", "kind", "message"), OTHERS)
def test_it_is_refused_by_its_own_error(give: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        give()


@pytest.mark.parametrize(
    "asked",
    [
        {"role": "user", "content": "Hello"},
        [{"role": "user", "content": "Hello"}],
        [{"role": "system", "content": "Old."}, user("Hello")],
        (user("Hello"),),
        [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
    ],
)
def test_messages_as_others_write_them(asked: Any) -> None:
    scripted = ScriptedModel("Hi!", "Hi!")
    assert model(scripted).system("Brief.").chat(asked).run_sync().text == "Hi!"
    assert model(scripted).system("Brief.").run_batch_sync([asked])[0].text == "Hi!"
    assert all(seen.messages == (system("Brief."), user("Hello")) for seen in scripted.seen)


def test_what_is_no_message_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a list of Messages or of dicts with role and content, not of 'a'"):
        model("echo").chat(["a"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"not Run; give its \.conversation"):
        model("echo").chat(ECHO.run_sync())  # type: ignore[arg-type]
    with Store(tmp_path / "talks.db") as store, pytest.raises(TypeError, match=r"StoredConversation; give its \.conv"):
        model("echo").chat(store.load(store.save(ECHO.run_sync().conversation)))  # type: ignore[arg-type]
    with pytest.raises(ConversationError, match=r"message 0: the role must be system, .* not 'bot'"):
        model("echo").chat([{"role": "bot", "content": "Hello"}])


def test_several_callbacks_are_as_many_steps() -> None:
    seen: list[str] = []
    pipeline = ECHO.then(lambda _: seen.append("a"), lambda _: seen.append("b"))
    pipeline = pipeline.map(lambda _: seen.append("c"), lambda _: seen.append("d"))
    pipeline.watch(lambda _: seen.append("e"), lambda _: seen.append("f")).run_sync()
    assert seen == ["a", "b", "c", "d", "e", "f"]


def test_several_fallbacks_are_asked_in_turn() -> None:
    down = (ScriptedModel(ProviderError("down", 500)), ScriptedModel(ProviderError("down", 500)))
    assert model(down[0], fallback=[down[1], "echo"]).chat("Hello").run_sync().text == "Hello"
    assert model("echo", fallback=[]).model.name == "echo"


def test_a_single_stop_is_one_text() -> None:
    assert ECHO.with_(stop="END").settings.stop == ("END",)


def test_paths_and_lists_of_effects() -> None:
    assert Effect("write", Path("/x")).target == "/x"  # type: ignore[arg-type]
    one = Effect("write", "x")
    assert Intent(one) == Intent([one]) == Intent((one,))  # type: ignore[arg-type]


async def test_an_executor_answers_calls_alone() -> None:
    with pytest.raises(ConversationError, match=r"an executor answers ToolCalls, not {'name': 'look'}"):
        await Executor(ToolRegistry([look])).run({"name": "look"}, CallScope())  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="decisions must be a dict"):
        await Executor(ToolRegistry([look])).run_all([CALL], CallScope(), decisions=[True])  # type: ignore[arg-type]


@each_case(("give", "message"), WRONG)
def test_it_is_refused(give: Callable[[], Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        give()


def test_a_rule_needs_a_mapping_of_arguments() -> None:
    with pytest.raises(PolicyError, match="arguments of a rule must be a mapping of names, not \\['a'\\]"):
        Rule("deny", arguments=["a"])  # type: ignore[arg-type]


async def test_a_stream_must_be_entered() -> None:
    with pytest.raises(SettingsError, match="stream\\(\\) must be entered: `async with"):
        async for _ in ECHO.stream():  # type: ignore[attr-defined]
            pass


async def test_an_answer_as_text_is_what_the_model_wrote() -> None:
    scripted = ScriptedModel("Just words.")
    assert (await model(scripted).chat("?").parse_as(str).run()).output == "Just words."
    assert [message.role for message in scripted.seen[0].messages] == ["user"]


FOREIGN: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: ECHO.within(max_turns=3),
        SettingsError,
        r"^within\(\) has no option 'max_turns'; write within\(rounds=…\)$",
    ),  # type: ignore[arg-type]
    (lambda: ECHO.within(token=3), SettingsError, r"no option 'token'; did you mean tokens\?$"),  # type: ignore[arg-type]
    (lambda: ECHO.within(xyz=3), SettingsError, "no option 'xyz'; there are: rounds, calls, tokens, cost, seconds$"),  # type: ignore[arg-type]
    (lambda: ECHO.using(tools=[look]), SettingsError, r"write using\(f, g\), with the tools one after the other$"),  # type: ignore[arg-type]
    (lambda: ECHO.using(rounds=3), SettingsError, r"using\(\) has no option 'rounds'; write within\(rounds=…\)$"),  # type: ignore[arg-type]
    (lambda: ECHO.with_(max_new_tokens=9), SettingsError, r"write with_\(max_tokens=…\)$"),  # type: ignore[arg-type]
    (lambda: ECHO.with_(temprature=0), SettingsError, r"did you mean temperature\?$"),  # type: ignore[arg-type]
    (lambda: ECHO.run_sync().content, AttributeError, "^'Run' object has no attribute 'content'; write run.text$"),  # type: ignore[attr-defined]
    (lambda: ECHO.run_sync().xyz, AttributeError, "^'Run' object has no attribute 'xyz'$"),  # type: ignore[attr-defined]
    (lambda: ECHO.invoke("?"), AttributeError, r"'invoke'; write chat\(…\).run_sync\(\), or await chat"),  # type: ignore[attr-defined]
    (lambda: ECHO.bind_tools([look]), AttributeError, r"'Pipeline' .* 'bind_tools'; write using\(f, g\)$"),  # type: ignore[attr-defined]
    (lambda: user("?").content, AttributeError, "'Message' .* 'content'; write message.text, or message.parts"),  # type: ignore[attr-defined]
]


@each_case(("give", "kind", "message"), FOREIGN)
def test_names_of_other_libraries_say_what_to_write(
    give: Callable[[], Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        give()


def test_other_missing_attributes_are_missing() -> None:
    run = ECHO.run_sync()
    assert not hasattr(run, "content")
    assert not hasattr(ECHO, "invoke")
    assert copy.deepcopy(run) == run
    assert pickle.loads(pickle.dumps(ECHO)).model.name == "echo"
    assert pickle.loads(pickle.dumps(run.conversation)) == run.conversation
