"""Which model answers a resumed conversation, and for which models an address of the environment or file is used."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path

import openai_server
import pytest
from terminals import assert_refused, ferrule

from ferrule.store import Store

ADDRESS = "http://127.0.0.1:1/v1"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kept.db"


def list_models(path: Path) -> list[str | None]:
    with Store(path) as store:
        return [summary.model for summary in store.list()]


def test_the_model_of_the_conversation_answers_again(path: Path) -> None:
    assert ferrule("ask", "One", "-m", "echo", "--store", path).returncode == 0
    with Store(path) as store:
        name = store.list()[0].id
    done = ferrule("ask", "Two", "--resume", name, "--store", path, FERRULE_MODEL="nobody:x")
    assert done.stdout == "Two\n"
    assert "ferrule: echo answers, the model of the conversation; --model names another\n" in done.stderr
    assert "\nmodel: echo\n" in ferrule("history", "show", name, "--store", path).stdout
    done = ferrule("ask", "What is 7 + 8?", "--resume", name, "-m", "embedded", "--store", path)
    assert "7 + 8 is 15." in done.stdout
    assert "answers" not in done.stderr
    assert json.loads(ferrule("history", "show", name, "--store", path, "--json").stdout)["model"] == "embedded"
    with Store(path) as store:
        store.fork(name)
    assert list_models(path) == ["embedded", "embedded"]


async def test_a_server_answers_again_at_the_address_given(path: Path) -> None:
    answers = [openai_server.says("Hello.")] * 3
    async with openai_server.server(*answers, judge=openai_server.lenient) as server:
        address = f"{server.url}/v1"
        first = ("ask", "Hi", "-m", "compatible:plain", "--store", path)
        assert (await asyncio.to_thread(ferrule, *first, FERRULE_BASE_URL=address)).stdout == "Hello.\n"
        again = ("ask", "Hi", "-c", "--store", path)
        assert (await asyncio.to_thread(ferrule, *again, "--base-url", address)).stdout == "Hello.\n"
        assert (await asyncio.to_thread(ferrule, *again, FERRULE_BASE_URL=address)).stdout == "Hello.\n"
        assert {request.body["model"] for request in server.requests} == {"plain"}
    done = ferrule(*again)
    assert (done.returncode, done.stdout) == (2, "")
    assert "compatible:plain: give the server's address by --base-url" in done.stderr


def test_the_last_conversation_is_continued(path: Path) -> None:
    assert_refused(ferrule("ask", "Hi", "-c", "--store", path), "no conversation is saved in", str(path))
    assert not path.exists()
    for question in ("One", "Two"):
        ferrule("ask", question, "-m", "echo", "--store", path)
    assert ferrule("chat", "--continue", "--store", path, typed="Three\n").stdout == "Three\n"
    with Store(path) as store:
        assert [(one.title, one.messages) for one in store.list()] == [("Two", 4), ("One", 2)]
    assert_refused(ferrule("ask", "Hi", "-c", "--resume", "x", "--store", path), "--continue and --resume")
    assert_refused(ferrule("ask", "Hi", "-c", "-s", "x", "--store", path), "--continue and --system")


def test_a_store_without_models_still_opens(path: Path) -> None:
    ferrule("ask", "One", "-m", "echo", "--store", path)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE conversation_models")
    assert list_models(path) == [None]
    assert ferrule("ask", "Two", "-c", "--store", path, FERRULE_MODEL="echo").stdout == "Two\n"
    assert list_models(path) == ["echo"]
    with Store(path) as store:
        store.delete(store.list()[0].id)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM conversation_models").fetchone() == (0,)


@pytest.mark.parametrize(
    ("options", "changes", "words"),
    [
        ((), {}, ("FERRULE_BASE_URL", "embedded has no address")),
        ((), {"FERRULE_MODEL": "compatible:x", "FERRULE_BASE_URL": "example.com"}, ("FERRULE_BASE_URL", "http://")),
        (("-m", "compatible:x"), {"FERRULE_MODEL": "openai:x"}, ("FERRULE_BASE_URL was left out", "of openai:x")),
    ],
)
def test_an_error_names_the_variable(options: tuple[str, ...], changes: dict[str, str], words: tuple[str, ...]) -> None:
    assert_refused(ferrule("ask", "Hi", *options, **{"FERRULE_BASE_URL": ADDRESS, **changes}), *words)


async def test_the_key_of_a_service_is_not_sent_to_the_address_of_another() -> None:
    async with openai_server.server(judge=openai_server.lenient) as server:
        for beside in ({}, {"FERRULE_MODEL": "compatible:x"}):
            done = await asyncio.to_thread(
                ferrule, "ask", "Hi", "-m", "openai:gpt-5", FERRULE_BASE_URL=f"{server.url}/v1",
                OPENAI_BASE_URL=ADDRESS, OPENAI_API_KEY="secret-key", **beside,
            )  # fmt: skip
            assert f"no connection to {ADDRESS}" in done.stderr
        assert server.requests == []
