"""Files that are damaged or forged: one clear line, nothing hangs, and no other conversation is changed."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from ferrule.conversation import Conversation, Image, Text, ToolCall, ToolResult, assistant, tool_message, user
from ferrule.errors import ConversationError
from ferrule.execution import Pending
from ferrule.store import Store

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CALL = ToolCall("call_1", "look", '{"a": 1}')
SHOWN = tool_message(ToolResult("call_1", "look", (Text("x"), Image(b"\x89PNG...", "image/png"))))
ASKED = Conversation((user("How is the camel?"), assistant(CALL), SHOWN, assistant("Thirsty.")), NOW)
WAITING = Conversation((user("Where is the llama?"), assistant(CALL)), NOW)
OTHER = Conversation((user("A talk of its own"), assistant("Yes.")), NOW)
DEEP = "[" * 5000 + "]" * 5000
NEST = '{"type": "tool_result", "call_id": "a", "name": "b", "status": "ok", "content": ['
RESULTS = f'{{"role": "tool", "parts": [{NEST * 300}{"]}" * 300}]}}'
ENDLESS = "WITH RECURSIVE x (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM x)"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str, str]:
    """A file with three conversations, which the tests copy, and their ids."""
    path = tmp_path_factory.mktemp("stores") / "made.db"
    with Store(path) as store:
        ids = store.save(ASKED), store.save(WAITING, pending=(Pending(CALL, "why"),)), store.save(OTHER, model="m")
        store.search("camel")
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path, *ids


@pytest.fixture
def damaged(made: tuple[Path, str, str, str], tmp_path: Path) -> Callable[[str], Path]:
    """Copies the file, and runs SQL on the copy."""

    def damage(statement: str) -> Path:
        path = tmp_path / "damaged.db"
        shutil.copy(made[0], path)
        connection = sqlite3.connect(path)
        connection.executescript(statement)
        connection.close()
        return path

    return damage


def set_message(data: str, row: int = 1) -> str:
    return f"UPDATE messages SET data = {data} WHERE id = {row}"


def set_row(change: str) -> str:
    return f"UPDATE conversations SET {change} WHERE title LIKE 'How%'"


def set_waiting(data: str) -> str:
    return f"UPDATE conversations SET waiting = '{data}' WHERE title LIKE 'Where%'"


FORGED = {
    "trigger": "CREATE TRIGGER t AFTER INSERT ON messages BEGIN DELETE FROM conversations; END",
    "view": "CREATE VIEW v AS SELECT 1",
    "endless nodes": f"DROP TABLE nodes; CREATE VIEW nodes AS {ENDLESS} SELECT id, id AS parent, 1 AS message FROM x",
    "endless models": f"DROP TABLE conversation_models; CREATE VIEW conversation_models AS {ENDLESS} SELECT id FROM x",
    "endless index": f"DROP TABLE message_index; CREATE VIEW message_index AS {ENDLESS} SELECT id FROM x",
    "index": "CREATE INDEX e ON conversations (length(printf('%.*c', 9, 'x')))",
    "column": "ALTER TABLE conversations ADD COLUMN e TEXT GENERATED ALWAYS AS (abs(head)) VIRTUAL",
    "checked": "DROP TABLE message_index_config; CREATE TABLE message_index_config (k CHECK (abs(k) > 0), v)",
    "begun calls": "CREATE TABLE begun_calls (node CHECK (abs(node) > 0), call, conversation)",
    "no table": "DROP TABLE conversations",
}
# What is said where the first conversation is loaded, or nothing if it can be.
DAMAGED = {
    "cycle": ("UPDATE nodes SET parent = 4 WHERE id = 1", "some of its messages are missing"),
    "own parent": ("UPDATE nodes SET parent = id WHERE id = 2", "some of its messages are missing"),
    "no head": (set_row("head = 99"), "some of its messages are missing"),
    "head of text": (set_row("head = 'x'"), "its head can't be read"),
    "no node": ("DELETE FROM nodes WHERE id = 2", "some of its messages are missing"),
    "order": ("UPDATE nodes SET depth = 7 - depth WHERE id < 5", "some of its messages are missing"),
    "no message": ("DELETE FROM messages WHERE id = 2", "message 1: not JSON"),
    "not JSON": (set_message("'{'"), "message 0: not JSON"),
    "a list": (set_message("'[1]'"), "message 0: not what it was"),
    "another message": (set_message("(SELECT data FROM messages WHERE id = 4)"), "message 0: not what it was"),
    "a number": (set_message("5"), "message 0: not what it was"),
    "bytes": (set_message("X'ff00'"), "message 0: not JSON"),
    "not UTF-8": (set_message("CAST(X'ff41' AS TEXT)"), "message 0: not JSON"),
    "deep": (set_message(f"'{DEEP}'"), "message 0: nested too deeply"),
    "digits": (set_message(f"'{'1' * 5000}'"), "message 0: not JSON"),
    "no time": (set_row("now = 'x'"), "'x' is no time"),
    "time of bytes": (set_row("now = X'ff'"), "its now can't be read"),
    "no update": (set_row("updated = 'x'"), "'x' is no time"),
    "far update": (set_row("updated = '0001-01-01T00:00:00+23:59'"), "no time that can be shown"),
    "title of bytes": (set_row("title = X'ff'"), "its title can't be read"),
    "title with signs": (set_row("title = char(27) || '[31m' || CAST(X'ff' AS TEXT)"), ""),
    "image": ("UPDATE blobs SET data = X'00'", "isn't what it was when it was saved"),
    "image of a number": ("UPDATE blobs SET data = 3000000000", "isn't in the blobs given"),
    "image of text": ("UPDATE blobs SET data = 'x'", "isn't in the blobs given"),
    "depth": ("UPDATE nodes SET depth = 'x' || depth WHERE id < 5", ""),
    "calls": (set_waiting("x"), ""),
    "calls in a list": (set_waiting("[]"), ""),
    "calls of a number": (set_waiting('{"pending": 5}'), ""),
    "call without id": (set_waiting('{"pending": [{}], "decisions": {}}'), ""),
    "call with a list": (set_waiting('{"pending": [{"call": {"id": [1]}}], "decisions": {}}'), ""),
    "deep calls": (set_waiting(DEEP), ""),
    "decisions": (set_waiting('{"pending": [], "decisions": [1]}'), ""),
    "index data": ("UPDATE message_index_data SET block = X'ffffffff'", ""),
    "index table": ("DELETE FROM message_index_data", ""),
}


def try_to(act: Callable[[], object]) -> str:
    """What is said where something can't be done: one line that isn't long."""
    said = ""
    try:
        act()
    except ConversationError as error:
        said = str(error)
    assert "\n" not in said
    assert len(said) < 400
    return said


@pytest.mark.parametrize("statement", FORGED.values(), ids=FORGED)
def test_a_file_with_what_ferrule_did_not_make_is_refused(damaged: Callable[[str], Path], statement: str) -> None:
    path = damaged(statement)
    before = path.read_bytes()
    said = try_to(lambda: Store(path))
    assert str(path) in said
    assert "which ferrule didn't make" in said or "it has no 'conversations'" in said
    assert path.read_bytes() == before


@pytest.mark.parametrize(("statement", "words"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_one_line_and_no_other_conversation_is_changed(
    damaged: Callable[[str], Path], made: tuple[Path, str, str, str], statement: str, words: str
) -> None:
    _, first, waiting, other = made
    with Store(damaged(statement), create=False) as store:
        said = try_to(lambda: store.load(first))
        assert words in said if words else not said
        assert bool(said) is said.startswith(f"the conversation {first!r} is damaged: ")
        for act in (
            lambda: store.load(waiting),
            lambda: store.search("camel"),
            lambda: store.search("it"),
            lambda: store.save(ASKED.add(user("more")), id=first),
            lambda: store.save(ASKED.add(user("another"))),
            lambda: store.fork(first, 1),
            lambda: store.remove_last(first, ASKED),
            store.list,
        ):
            try_to(act)
        assert store.load(other).conversation == OTHER
        assert other in {summary.id for summary in store.list()}
        try_to(lambda: store.delete(first))
        with pytest.raises(ConversationError, match="no conversation has the id"):
            store.load(first)
        assert store.load(other).conversation == OTHER


def test_what_is_left_out_of_a_list_is_said(
    damaged: Callable[[str], Path], made: tuple[Path, str, str, str], caplog: pytest.LogCaptureFixture
) -> None:
    _, first, waiting, other = made
    with Store(damaged(set_row("updated = 'x'")), create=False) as store:
        assert {summary.id for summary in store.list()} == {waiting, other}
        assert [summary.id for summary in store.list(1)] in ([waiting], [other])
        assert store.find_title(first[:6]) == (first, "How is the camel?")
    assert f"left out, as it is damaged: the conversation {first!r}" in caplog.text
    caplog.clear()
    with Store(damaged(set_message("'{'")), create=False) as store:
        assert store.search("camel") == ()
    assert "left out, as it is damaged: message 1 of the file: not JSON" in caplog.text


def test_a_message_that_was_planted_is_not_taken_for_another(tmp_path: Path) -> None:
    """The hash of a message that is saved later, with another content."""
    path = tmp_path / "planted.db"
    with Store(path) as store:
        store.save(Conversation((user("Delete nothing."),), NOW))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE messages SET data = replace(data, 'nothing', 'everything')")
    connection.close()
    with Store(path) as store:
        again = store.save(Conversation((user("Delete nothing."), assistant("Right.")), NOW))
        with pytest.raises(ConversationError, match="message 0: not what it was when it was saved"):
            store.load(again)


def test_any_damaged_byte_is_at_most_an_error(made: tuple[Path, str, str, str], tmp_path: Path) -> None:
    content = made[0].read_bytes()
    for seed in range(100):
        chance = random.Random(seed)
        changed = bytearray(content)
        for _ in range(chance.choice((1, 4, 200))):
            changed[chance.randrange(16, len(content))] = chance.randrange(256)
        path = tmp_path / f"{seed}.db"
        path.write_bytes(changed[: chance.choice((len(content), len(content) // 2))])
        with suppress(ConversationError), Store(path, create=False) as store:
            acts: list[Callable[[], object]] = [store.list, *(partial(store.load, name) for name in made[1:])]
            acts += [partial(store.search, "camel"), partial(store.save, OTHER), partial(store.delete, made[1])]
            for act in acts:
                with suppress(ConversationError):
                    act()
