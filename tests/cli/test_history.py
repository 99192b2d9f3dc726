"""`ferrule history`, and the conversations that `ask` and `chat` keep where they are asked to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminals import Terminal, assert_refused, ferrule

from ferrule.conversation import (
    Conversation,
    Image,
    MalformedCall,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_message,
    user,
)
from ferrule.execution import Pending
from ferrule.formats.conversation_json import from_json, loads
from ferrule.formats.detection import FORMATS, detect_format
from ferrule.store import Store

CALL = ToolCall("call_1", "calculator", '{"expression": "12 * 34"}')
TALK = Conversation(
    (
        user("What is 12 * 34?"),
        assistant(Reasoning("Hm."), CALL),
        tool_message(ToolResult("call_1", "calculator", (Text("408"),))),
        assistant("12 × 34 is 408.\x1b[31m"),
    )
)
PLAIN = Conversation((TALK.messages[0], assistant(CALL), TALK.messages[2], assistant("It is 408.")))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kept.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store(path) as opened:
        yield opened


def history(path: Path, *arguments: str | Path, **changes: str) -> str:
    """What a command prints when all is well."""
    done = ferrule("history", *arguments, "--store", path, **changes)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def test_a_list_has_the_last_changed_first(store: Store, path: Path) -> None:
    first = store.save(TALK)
    second = store.save(Conversation((user("Hi\x1b[2J"),)))
    lines = history(path, "list").splitlines()
    assert [line.split()[0] for line in lines] == [second, first]
    assert lines[0].endswith("  1 message  Hi\\x1b[2J")
    assert lines[1].endswith("  4 messages  What is 12 * 34?")
    assert history(path, "list", "--limit", "1").splitlines() == lines[:1]
    assert ferrule("history", "--store", path).stdout == ferrule("history", FERRULE_STORE=str(path)).stdout
    assert ferrule("history", "--store", path, "list").stdout.splitlines() == lines
    listed = json.loads(history(path, "list", "--json"))
    assert [(one["id"], one["title"], one["messages"], one["waiting"]) for one in listed] == [
        (second, "Hi\x1b[2J", 1, 0),
        (first, "What is 12 * 34?", 4, 0),
    ]


def test_a_conversation_is_shown(store: Store, path: Path) -> None:
    name = store.save(
        TALK.add(user("And this?", Image(b"cat")), assistant(MalformedCall("call_2", "<x\n", "truncated")))
    )
    shown = history(path, "show", name[:8])
    assert shown.startswith(f"{name}  2")
    assert shown.splitlines()[1:] == [
        "user: What is 12 * 34?",
        "▸ calculator  12 * 34  →  408",
        "assistant: 12 × 34 is 408.\\x1b[31m",
        "user: And this?[image/png, 3 bytes, 77af778b51abd4a3]",
        "▸ unreadable call  <x  …  not answered yet",
    ]


def test_as_json_a_conversation_is_whole(store: Store, path: Path) -> None:
    paused = Conversation((user("Go"), assistant(ToolCall("call_1", "go", "{}"))))
    name = store.save(paused, pending=[Pending(paused.pending[0], "somebody must say")])
    data = json.loads(history(path, "show", name, "--json"))
    (waiting,) = data["pending"]
    assert (data["id"], data["waiting"], waiting["reason"]) == (name, 1, "somebody must say")
    assert from_json(data["conversation"]) == paused
    assert ", 1 waiting" in history(path, "list")


def test_search_shows_where(store: Store, path: Path) -> None:
    name = store.save(TALK)
    assert history(path, "search", "HM.") == f'{name}  1 assistant  Hm. calculator {{"expression": "12 * 34"}}\n'
    (hit,) = json.loads(history(path, "search", "408", "--limit", "1", "--json"))
    assert (hit["id"], hit["position"], hit["role"], hit["title"]) == (name, 3, "assistant", "What is 12 * 34?")
    assert ferrule("history", "search", "camel", "--store", path).stderr == "ferrule: no saved message has 'camel'\n"
    assert json.loads(history(path, "search", "camel", "--json")) == []
    assert_refused(ferrule("history", "search", " ", "--store", path), "the search is empty")


def test_fork_and_delete(store: Store, path: Path) -> None:
    name = store.save(TALK)
    fork = history(path, "fork", name, "--at", "1").strip()
    assert store.load(fork).conversation.messages == TALK.messages[:1]
    other = json.loads(history(path, "fork", name, "--json"))["id"]
    assert (
        history(path, "delete", "--yes", name, fork)
        == f"deleted {name}  What is 12 * 34?\ndeleted {fork}  What is 12 * 34?\n"
    )
    assert [summary.id for summary in store.list()] == [other]
    assert store.load(other).conversation == TALK
    assert_refused(ferrule("history", "fork", other, "--at", "9", "--store", path), other, "4 messages", "9")


def test_deleting_is_confirmed_and_takes_no_short_prefix(store: Store, path: Path) -> None:
    name = store.save(TALK)
    assert_refused(ferrule("history", "delete", name[:3], "--yes", "--store", path), "too short", "4 characters")
    assert_refused(ferrule("history", "delete", name, "--store", path), "--yes")
    for answer, count in (("n", 1), ("y", 0)):
        with Terminal("history", "delete", name[:4], "--store", path) as terminal:
            terminal.expect(f"{name}  What is 12 * 34?")
            terminal.expect("delete 1 conversation? [y/N] ")
            terminal.type(f"{answer}\r")
            assert terminal.ended() == 0
        assert len(store.list()) == count


def test_where_one_id_is_wrong_none_is_deleted(store: Store, path: Path) -> None:
    name = store.save(TALK)
    assert_refused(ferrule("history", "delete", name, "nonsense", "--store", path), "nonsense")
    assert len(store.list()) == 1


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_exported_can_be_rendered(form: str, store: Store, path: Path, tmp_path: Path) -> None:
    name = store.save(PLAIN)
    printed = history(path, "export", name, "--format", form)
    assert detect_format(json.loads(printed)) == form
    out = tmp_path / "out.json"
    assert history(path, "export", name, "--format", form, "--out", out) == ""
    assert out.read_text() == printed
    rendered = ferrule("render", out, "--dialect", "nanochat")
    if form == "ovis":
        # Its calls have values without names, which nanochat's tool has no place for.
        assert_refused(rendered, "expression")
        return
    named = ferrule("render", "-", "--format", form, "--dialect", "nanochat", typed=printed)
    assert rendered.stdout == named.stdout
    assert "⟦<|python_start|>12 * 34<|python_end|>⟧<|output_start|>408<|output_end|>⟦It is 408." in rendered.stdout


def test_ours_is_exported_without_loss_and_others_say_what_is_lost(store: Store, path: Path) -> None:
    name = store.save(TALK)
    assert loads(history(path, "export", name)) == TALK
    done = ferrule("history", "export", name, "--format", "anthropic", "--store", path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["messages"]
    assert "ferrule: not in the anthropic format: " in done.stderr
    assert "<think>" in history(path, "export", name, "--format", "ovis")
    assert_refused(ferrule("history", "export", name, "--format", "word", "--store", path), "'word'", "nanochat")


@pytest.mark.parametrize("command", ["show", "fork", "delete", "export"])
def test_an_id_that_is_not_there_is_refused(command: str, store: Store, path: Path) -> None:
    store.save(TALK)
    assert_refused(ferrule("history", command, "nonsense", "--store", path), "no conversation has the id 'nonsense'")


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("notes " * 200)
    assert_refused(ferrule("history", "--store", tmp_path / "notes.txt"), "notes.txt", "not a store of conversations")
    assert_refused(ferrule("history", "--store", tmp_path / "no.db"), "no.db", "no such store")
    assert_refused(ferrule("ask", "Hi", "--store", tmp_path), str(tmp_path))
    assert not (tmp_path / "no.db").exists()


def test_colours_are_for_a_terminal(store: Store, path: Path) -> None:
    name = store.save(TALK)
    with Terminal("history", "show", name, "--store", path) as terminal:
        assert terminal.ended() == 0
        assert f"\x1b[33m{name}\x1b[0m" in terminal.shown
        assert "\x1b[31m" not in terminal.shown
    with Terminal("history", "--store", path, NO_COLOR="1") as terminal:
        assert terminal.ended() == 0
        assert "\x1b[3" not in terminal.shown


def test_nothing_is_kept_unless_it_is_asked_for(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": ""}
    assert ferrule("ask", "What is 2 + 3?", **home).stderr == ""
    assert list(tmp_path.iterdir()) == []
    done = ferrule("ask", "What is 2 + 3?", "--keep", **home)
    assert done.stderr.startswith("ferrule: saved as ")
    assert (tmp_path / ".local/share/ferrule/conversations.db").is_file()
    name = done.stderr.split()[-1]
    assert ferrule("history", **home).stdout.split()[0] == name
    data = {**home, "XDG_DATA_HOME": str(tmp_path / "data")}
    assert "no conversations are saved" in ferrule("history", **data).stderr
    assert_refused(ferrule("history", "show", "x", **data), str(tmp_path / "data" / "ferrule" / "conversations.db"))


def test_a_chat_is_kept_and_gone_on_with(path: Path) -> None:
    done = ferrule("chat", "--store", path, typed="What is 2 + 3?\n/new\nWhat is 4 * 5?\nWhat is 6 * 7?\n")
    first, second = done.stderr.removeprefix("ferrule: saved as ").strip().split(", ")
    done = ferrule("chat", "--resume", first, typed="What is 8 - 1?\n", FERRULE_STORE=str(path))
    assert done.stderr == f"ferrule: resumed {first}, 4 messages: What is 2 + 3?\nferrule: saved as {first}\n"
    with Store(path) as store:
        assert {one.id: (one.title, one.messages) for one in store.list()} == {
            first: ("What is 2 + 3?", 8),
            second: ("What is 4 * 5?", 8),
        }
        assert store.load(first).conversation.messages[0].text == "What is 2 + 3?"
        # What was sampled is kept too, so the model reads none of it again another way.
        assert store.load(first).conversation.messages[1].sampled is not None


def test_what_can_not_be_resumed_is_refused(store: Store, path: Path, tmp_path: Path) -> None:
    name = store.save(TALK)
    assert_refused(ferrule("chat", "--resume", "nonsense", "--store", path), "no conversation has the id 'nonsense'")
    assert_refused(ferrule("chat", "--resume", name, "--store", tmp_path / "no.db"), "no such store")


def test_a_system_message_is_shown_as_one(store: Store, path: Path) -> None:
    name = store.save(Conversation((system("Be brief."), user("Hi"))))
    assert history(path, "show", name).splitlines()[1:] == ["system: Be brief.", "user: Hi"]


def test_a_chat_is_saved_in_our_format_unless_its_name_or_an_option_names_another(tmp_path: Path) -> None:
    lines = ["What is 2 + 3?", "/save own.json", "/save x.nanochat.json", "/save --format openai other file.json"]
    lines += ["/save --format word x.json", "/save --format ovis", "/save"]
    done = ferrule("chat", typed="\n".join(lines), folder=tmp_path)
    assert [line for line in done.stderr.splitlines() if "saved" in line] == [
        "ferrule: saved 4 messages in own.json",
        "ferrule: saved 4 messages in x.nanochat.json",
        "ferrule: saved 4 messages in other file.json",
    ]
    assert "not in the openai format: message 1 (assistant): the ids that were sampled" in done.stderr
    saved = {file.name: json.loads(file.read_text()) for file in tmp_path.iterdir()}
    assert {name: detect_format(data) for name, data in saved.items()} == {
        "own.json": "ferrule",
        "x.nanochat.json": "nanochat",
        "other file.json": "openai",
    }
    assert from_json(saved["own.json"]).messages[1].sampled is not None
    assert "unknown format 'word'" in done.stderr
    assert done.stderr.count("/save needs a file name") == 2
    shown = {ferrule("render", tmp_path / name).stdout for name in saved}
    assert len(shown) == 1


def test_where_nothing_is_saved_a_line_says_so(tmp_path: Path) -> None:
    done = ferrule("history", XDG_DATA_HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "ferrule: no conversations are saved; ask and chat save them with --keep\n"
    assert ferrule("history", "--json", XDG_DATA_HOME=str(tmp_path)).stdout == "[]\n"
    assert not [*tmp_path.iterdir()]
    store = tmp_path / "kept.db"
    ferrule("ask", "Hello", "--model", "echo", "--store", store)
    done = ferrule("history", "search", "goodbye", "--store", store)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "ferrule: no saved message has 'goodbye'\n")


@pytest.mark.parametrize("command", [("ask", "Hello", "--model", "echo"), ("history",)])
def test_a_store_that_is_no_regular_file_is_refused(command: tuple[str, ...]) -> None:
    assert_refused(ferrule(*command, "--store", "/dev/null"), "/dev/null: not a regular file", "name a file")
