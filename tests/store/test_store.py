"""Conversations kept: shared rows, branches, search, several processes, and files that are no store."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from any_conversation import ASKED, CONVERSATIONS
from ferrule.conversation import (
    Conversation,
    Image,
    MalformedCall,
    Message,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    tool_message,
    user,
)
from ferrule.errors import ConversationError
from ferrule.execution import Decision, Executor, Pending
from ferrule.media import frame_text
from ferrule.store import Store, database, tree
from ferrule.tools.decorator import Tool
from ferrule.tools.intent import Effect, Intent
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
TALK = Conversation((user("How is the camel?"), assistant("It is thirsty."), user("And now?")), NOW)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "conversations.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store(path) as opened:
        yield opened


def count(path: Path, table: str) -> int:
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    finally:
        connection.close()


@given(CONVERSATIONS)
@settings(max_examples=50)
def test_whatever_a_conversation_holds_comes_back(conversation: Conversation) -> None:
    with Store(":memory:") as store:
        assert store.load(store.save(conversation)).conversation == conversation


def test_saving_twice_keeps_once(store: Store, path: Path) -> None:
    first = store.save(ASKED)
    before = store.list()
    assert store.save(ASKED) == store.save(ASKED, id=first) == first
    assert store.list() == before
    assert count(path, "messages") == count(path, "nodes") == len(ASKED)
    assert store.load(first).conversation == ASKED


def test_a_conversation_goes_on_under_its_id(store: Store, path: Path) -> None:
    name = store.save(Conversation((), NOW))
    for length in (1, 2, 3):
        assert store.save(Conversation(TALK.messages[:length], NOW), id=name) == name
    (summary,) = store.list()
    assert (summary.id, summary.title, summary.messages, summary.waiting) == (name, "How is the camel?", 3, 0)
    assert count(path, "nodes") == 3


def test_messages_that_were_saved_are_not_hashed_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    convert = tree.message_to_json

    def record(message: Message, *arguments: Any) -> Any:
        hashed.append(message.text)
        return convert(message, *arguments)

    monkeypatch.setattr(tree, "message_to_json", record)
    name, talk = store.save(TALK), TALK
    for text in ("Better.", "And tomorrow?"):
        hashed.clear()
        talk = talk.add(user(text))
        assert store.save(talk, id=name) == name
        assert hashed == [text]
    assert store.load(name).conversation == talk


def test_what_another_process_has_deleted_meanwhile_is_saved_whole(store: Store, path: Path) -> None:
    name = store.save(TALK)
    with Store(path) as other:
        other.delete(name)
        # Their nodes get the ids of those that were deleted.
        theirs = other.save(Conversation(tuple(user(f"other {number}") for number in range(3)), NOW))
    longer = TALK.add(assistant("Better."))
    assert store.load(store.save(longer)).conversation == longer
    assert [one.text for one in store.load(theirs).conversation.messages] == ["other 0", "other 1", "other 2"]


def test_the_last_message_is_removed_only_where_it_is_still_the_last(store: Store, path: Path) -> None:
    name = store.save(TALK)
    longer = TALK.add(assistant("Better."))
    store.save(longer, id=name)
    store.remove_last(name, TALK)
    assert store.load(name).conversation == longer
    store.remove_last(name, longer)
    assert store.load(name).conversation == TALK
    assert count(path, "nodes") == count(path, "messages") == 3


def test_forks_share_their_rows(store: Store, path: Path) -> None:
    long = Conversation(tuple(user(f"{number}") for number in range(200)), NOW)
    name = store.save(long)
    fork = store.fork(name, title="another end")
    assert count(path, "nodes") == count(path, "messages") == 200
    store.save(long.add(user("end")), id=name)
    assert store.save(long.add(user("other end")), id=fork) == fork
    assert count(path, "nodes") == count(path, "messages") == 202
    assert [(one.title, one.messages) for one in store.list()] == [("another end", 201), ("0", 201)]
    middle = store.load(store.fork(name, at=50)).conversation
    assert middle.messages == long.messages[:50]
    assert store.load(store.fork(name, at=0)).conversation == Conversation((), NOW)
    assert count(path, "nodes") == 202
    with pytest.raises(ConversationError, match="has 201 messages; it can't be forked after 202"):
        store.fork(name, at=202)


def test_the_same_message_in_another_place_is_kept_once(store: Store, path: Path) -> None:
    store.save(Conversation((user("yes"), assistant("yes"), user("yes")), NOW))
    assert (count(path, "messages"), count(path, "nodes")) == (2, 3)


def test_what_went_on_elsewhere_is_not_lost(store: Store) -> None:
    name = store.save(TALK)
    mine, theirs = TALK.add(assistant("Better.")), TALK.add(assistant("Worse."))
    assert store.save(theirs, id=name) == name
    other = store.save(mine, id=name)
    assert other != name
    assert [store.load(one).conversation for one in (name, other)] == [theirs, mine]
    taken_back = store.save(TALK, id=name)
    assert taken_back not in (name, other)
    assert store.load(name).conversation == theirs


def test_deleting_leaves_what_others_have(store: Store, path: Path) -> None:
    image = Image(b"camel")
    base = store.save(Conversation((user("a", image), user("b")), NOW))
    longer = store.save(Conversation((user("a", image), user("b"), user("c", Image(b"desert"))), NOW))
    assert (count(path, "messages"), count(path, "blobs")) == (3, 2)
    store.search("abc")
    store.delete(longer)
    assert (count(path, "messages"), count(path, "nodes"), count(path, "blobs")) == (2, 2, 1)
    assert store.load(base).conversation.messages[0].parts[1] == image
    store.delete(base)
    tables = ("conversations", "messages", "nodes", "blobs", "message_blobs")
    assert [count(path, table) for table in tables] == [0, 0, 0, 0, 0]


def test_deleting_what_others_go_on_from_leaves_their_messages(store: Store, path: Path) -> None:
    short = store.save(TALK)
    long = store.save(TALK.add(assistant("Better.")))
    assert short != long
    store.delete(short)
    assert count(path, "nodes") == 4
    assert len(store.load(long).conversation) == 4


def test_an_id_may_be_shortened_while_it_is_one_conversations(store: Store) -> None:
    names = [store.save(Conversation((user(str(number)),), NOW)) for number in range(17)]
    assert store.load(names[3][:9].upper()).summary.id == names[3]
    twice = next(name[0] for name in names if sum(other[0] == name[0] for other in names) > 1)
    with pytest.raises(ConversationError, match=f"several ids begin with '{twice}'"):
        store.load(twice)
    for wrong in ("", "xyz", "%"):
        for use in (store.load, store.delete, store.fork, lambda name: store.save(TALK, id=name)):
            with pytest.raises(ConversationError, match=f"no conversation has the id '{wrong}'"):
                use(wrong)


def test_titles(store: Store) -> None:
    named = store.save(TALK, "Camels,\n  mostly \0\ud800")
    assert store.load(named).summary.title == "Camels, mostly ?"
    assert store.save(TALK, "Camels", id=named) == named
    assert store.save(TALK, id=named) == named
    assert store.load(named).summary.title == "Camels"
    assert store.save(TALK, "Dromedaries") != named
    attached = user("Improve @a.py", Text(f"\n\n{frame_text('a.py', 'x = 1')}"))
    assert store.load(store.save(Conversation((attached,)))).summary.title == "Improve @a.py"
    assert len(store.load(store.save(Conversation((user("x" * 500),)))).summary.title) == 80
    assert store.load(store.save(Conversation((assistant("Hello."),)))).summary.title == "Hello."


def test_search_finds_all_that_was_written(store: Store) -> None:
    name = store.save(ASKED.add(user("Größe 42, STRASSE 一二三四")))
    for text, position in (
        ("in it?", 0),
        ("LOOK", 3),
        ("1.0", 1),
        ("a CAT", 3),
        ("<look", 3),
        ("strasse GRÖSSE", 4),
        ("二三", 4),
        ("一二三", 4),
        ('"x"', 1),
    ):
        hits = store.search(text)
        assert (hits[0].id, hits[0].position) == (name, position), text
    assert store.search("camel") == store.search("cat dog") == ()
    for nothing in ("", " \n"):
        with pytest.raises(ConversationError, match="the search is empty"):
            store.search(nothing)


def test_a_message_that_forks_share_is_found_in_each(store: Store) -> None:
    name = store.save(TALK)
    fork = store.fork(name)
    longer = store.save(TALK.add(assistant("Thirsty still.")), id=fork)
    assert {hit.id for hit in store.search("camel")} == {name, fork}
    assert [(hit.id, hit.position, hit.role) for hit in store.search("still")] == [(longer, 3, "assistant")]
    assert len(store.search("thirsty")) == 3
    assert len(store.search("thirsty", limit=2)) == 2
    store.delete(fork)
    assert store.search("still") == ()


def test_an_excerpt_shows_the_word_and_what_is_around_it(store: Store) -> None:
    store.save(Conversation((user("far " * 40 + "the Camel\nis here " + "away " * 40),)))
    (hit,) = store.search("camel")
    assert "the Camel is here away" in hit.excerpt
    assert hit.excerpt.startswith("…")
    assert hit.excerpt.endswith("…")
    assert len(hit.excerpt) < 120


@given(st.lists(st.text("abAB \"*'%_", max_size=8), max_size=6), st.text("ab \"*'%_", min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_search_is_what_looking_at_each_message_would_find(texts: list[str], wanted: str) -> None:
    words = wanted.split()
    with Store(":memory:") as store:
        for text in texts:
            store.save(Conversation((user(text),), NOW))
        if not words:
            return
        found = {hit.title for hit in store.search(wanted)}
    assert found == {" ".join(one.split()) for one in texts if all(word in one.lower() for word in words)}


def test_without_an_index_the_same_is_found(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(path) as store:
        first = store.save(TALK)
        indexed = store.search("thirsty")
    monkeypatch.setattr(database, "_INDEX", "CREATE VIRTUAL TABLE x USING no_such_thing (text)")
    with Store(path) as store:
        assert store.search("thirsty") == indexed != ()
        second = store.save(Conversation((user("thirsty?"),), NOW))
        assert {hit.id for hit in store.search("thirsty")} == {first, second}


WRITER = """
import sys
from ferrule.conversation import Conversation, user
from ferrule.store import Store, database
from datetime import UTC, datetime
path, own, start = sys.argv[1:]
with Store(path) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    ids = []
    conversation = Conversation((user("shared"),), datetime(2026, 1, 31, tzinfo=UTC))
    name = store.save(conversation, title=own)
    for number in range(40):
        conversation = conversation.add(user("common"), user(f"{own} {number}"))
        assert store.save(conversation, id=name) == name
        if number % 10 == 0:
            store.delete(store.fork(name))
            store.search("common")
    print(name)
"""


def test_two_processes_write_one_file_at_once(path: Path) -> None:
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), own, "go"], **streams) for own in ("one", "two")
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    told = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], told
    with Store(path) as store:
        for (name, _), own in zip(told, ("one", "two"), strict=True):
            conversation = store.load(name.strip()).conversation
            assert [m.text for m in conversation.messages[2::2]] == [f"{own} {number}" for number in range(40)]
        assert len(store.list()) == 2
    assert count(path, "messages") == 2 + 80
    # The first two messages are the same in both, and their rows are shared.
    assert count(path, "nodes") == 2 + 2 * 79


def test_processes_that_make_the_file_at_once(path: Path) -> None:
    code = "import sys\nfrom ferrule.store import Store\nwith Store(sys.argv[1]) as store: store.list()"
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(path)], stderr=subprocess.PIPE, text=True) for _ in range(4)
    ]
    assert [(process.communicate(timeout=300)[1], process.returncode) for process in processes] == [("", 0)] * 4


class Ran:
    """A tool that counts how often it ran."""

    def __init__(self) -> None:
        self.cities: list[str] = []

    def book(self, city: str) -> str:
        """Book a trip."""
        self.cities.append(city)
        return f"booked {city}"

    def tool(self) -> Tool:
        return Tool.from_callable(
            self.book,
            approval="always",
            intent=lambda arguments: Intent((Effect("net", "shop"),), f"a trip to {arguments['city']}", "v1"),
        )


async def answers(ran: Ran, conversation: Conversation, **terms: object) -> list[ToolResult | Pending]:
    async with ToolRegistry([ran.tool()]).open() as registry:
        executor = Executor(registry, on_ask="pause")
        return await executor.run_all(conversation.pending, CallScope(conversation=conversation), **terms)


PAUSED = Conversation(
    (
        user("Two trips"),
        assistant(
            ToolCall("call_1", "book", '{"city": "Paris"}'),
            ToolCall("call_2", "book", '{"city": "Rome"}'),
            MalformedCall("call_3", "<book", "truncated"),
        ),
    ),
    NOW,
)


def test_a_paused_conversation_is_decided_on_and_resumed_elsewhere(path: Path) -> None:
    waiting = asyncio.run(answers(Ran(), PAUSED))
    assert all(isinstance(one, Pending) for one in waiting)
    with Store(path) as store:
        name = store.save(PAUSED, pending=waiting)
        assert store.list()[0].waiting == 3
    with Store(path) as store:
        stored = store.load(name)
        assert list(stored.pending) == waiting
        assert stored.decisions == {}
        first, second, _ = stored.pending
        decisions = {
            "call_1": first.decide(Decision.deny("too far")),
            "call_2": second.decide(Decision.edit({"city": "Bari"})),
        }
        store.save(stored.conversation, id=name, decisions=decisions)
    with Store(path) as store:
        stored = store.load(name)
        assert stored.decisions == decisions
        assert list(stored.pending) == waiting
        ran = Ran()
        results = asyncio.run(answers(ran, stored.conversation, decisions=stored.decisions))
        assert ran.cities == ["Bari"]
        resumed = stored.conversation.add(*(tool_message(result) for result in results))
        assert store.save(resumed, id=name) == name
        after = store.load(name)
        assert (after.pending, after.decisions, after.summary.waiting) == ((), {}, 0)
        assert [m.result.status for m in after.conversation.messages[2:]] == ["denied", "ok", "invalid"]


def test_a_decision_on_other_arguments_is_not_taken(path: Path) -> None:
    waiting = asyncio.run(answers(Ran(), PAUSED))
    with Store(path) as store:
        name = store.save(PAUSED, pending=waiting, decisions={"call_1": waiting[0].decide(Decision.allow())})
        stored = store.load(name)
    changed = Conversation((PAUSED.messages[0], assistant(ToolCall("call_1", "book", '{"city": "Oslo"}'))), NOW)
    ran = Ran()
    (result,) = asyncio.run(answers(ran, changed, decisions=stored.decisions))
    assert isinstance(result, Pending)
    assert ran.cities == []


def test_only_open_calls_wait(store: Store) -> None:
    stray = Pending(ToolCall("call_9", "book", "{}"), "why")
    with pytest.raises(ConversationError, match="the call 'call_9' isn't open"):
        store.save(PAUSED, pending=[stray])
    with pytest.raises(ConversationError, match="the call 'call_9' isn't open"):
        store.save(PAUSED, decisions={"call_9": Decision.allow()})
    assert store.list() == ()
    name = store.save(PAUSED, pending=[Pending(PAUSED.pending[0], "why")])
    fork = store.fork(name)
    assert store.load(fork).pending == store.load(name).pending != ()
    assert store.load(store.fork(name, at=1)).pending == ()


def test_files_that_are_no_store_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("a text that is certainly no database, and long enough to be looked at" * 10)
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE camels (name TEXT)")
    connection.close()
    before = other.read_bytes()
    newer = tmp_path / "newer.db"
    Store(newer).close()
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    for path, words in (
        (text, "not a store of conversations"),
        (other, "an SQLite file, but not a store of conversations"),
        (newer, "made by a newer ferrule .schema 7; this one knows 1"),
        (tmp_path, "unable to open database file"),
    ):
        with pytest.raises(ConversationError, match=words) as refused:
            Store(path)
        assert str(path) in str(refused.value)
    assert other.read_bytes() == before
    with pytest.raises(ConversationError, match="no such store of conversations"):
        Store(tmp_path / "nowhere.db", create=False)
    assert not (tmp_path / "nowhere.db").exists()


def test_a_store_is_private_and_closes(path: Path) -> None:
    with Store(path) as store:
        store.save(TALK)
    assert path.stat().st_mode & 0o077 == 0
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    with pytest.raises(ConversationError, match="closed"):
        store.list()


def test_a_result_of_nothing_is_kept(store: Store) -> None:
    empty = Conversation((assistant(ToolCall("a", "x", "")), tool_message(ToolResult("a", "x", (Text(""),)))), NOW)
    assert store.load(store.save(empty)).conversation == empty


def test_what_is_no_conversation_is_not_saved(tmp_path: Path) -> None:
    with (
        Store(tmp_path / "talks.db") as store,
        pytest.raises(ConversationError, match=r"such as run\.conversation, not the str 'x'"),
    ):
        store.save("x")  # type: ignore[arg-type]
