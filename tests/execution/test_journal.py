"""What is written down of calls, what is not, and what can be told from it after a crash."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from running_tools import answers, call

from ferrule.conversation import MalformedCall, ToolCall
from ferrule.execution import Executor, FileJournal, Policy, Rule, find_interrupted
from ferrule.execution.journal import read_entries
from ferrule.execution.secrets import SCRUBBED, scrub_secrets, scrub_text
from ferrule.tools.decorator import tool
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope
from tables import each_case


@tool
async def fetch(url: str, headers: dict[str, str] | None = None) -> str:
    """Fetch it."""
    if url == "bad":
        raise ValueError("no such host")
    return "page"


def test_every_call_has_its_lines(tmp_path):
    path = tmp_path / "new" / "folder" / "calls.jsonl"
    calls = [
        call("fetch", "c1", url="https://example.org", headers={"Authorization": "Bearer sesame", "Accept": "*/*"}),
        call("fetch", "c2", url="bad"),
        call("fetch", "c3", url="https://secret.example.org"),
        call("nothing", "c4"),
        MalformedCall("c5", "fetch(password='sesame', ", "truncated"),
        ToolCall("c6", "fetch", '{"url": "half \\ud83d", "api_key": "sesame"}'),
    ]
    policy = Policy((Rule("deny", arguments={"url": "*secret*"}, reason="not there"),))
    with FileJournal(path, who="a test") as journal:
        answers([fetch], calls, policy=policy, journal=journal)
    assert path.stat().st_mode & 0o077 == 0
    assert b"sesame" not in path.read_bytes()
    lines = read_entries(path)
    assert all(line["who"] == "a test" and line["time"] > 0 for line in lines)
    first = [line for line in lines if line["call"] == "c1"]
    assert [line["event"] for line in first] == ["started", "finished"]
    assert first[0]["tool"] == "fetch"
    assert first[0]["arguments"] == {
        "url": "https://example.org",
        "headers": {"Authorization": SCRUBBED, "Accept": "*/*"},
    }
    assert (first[0]["decision"], first[0]["by"]) == ("allow", "profile")
    assert (first[1]["status"], 0 <= first[1]["seconds"] < 5) == ("ok", True)
    second = [line for line in lines if line["call"] == "c2"]
    assert second[1]["detail"] == "error: ValueError: no such host"
    (third,) = [line for line in lines if line["call"] == "c3"]
    assert (third["event"], third["decision"], third["by"], third["reason"]) == ("refused", "deny", "rule", "not there")
    statuses = {line["call"]: line.get("status") for line in lines}
    assert statuses == {
        "c1": "ok",
        "c2": "error",
        "c3": "denied",
        "c4": "unknown_tool",
        "c5": "invalid",
        "c6": "invalid",
    }


def test_started_stands_there_before_the_call_runs(tmp_path):
    path = tmp_path / "j"

    @tool
    async def peek() -> int:
        """Count the lines."""
        return len(read_entries(path))

    with FileJournal(path) as journal:
        assert answers([peek], [call("peek")], journal=journal)[0].text == "1"


def test_a_call_that_cannot_be_recorded_is_not_run(tmp_path):
    ran = []

    @tool
    async def act() -> str:
        """Act."""
        ran.append(1)
        return ""

    journal = FileJournal(tmp_path / "j")
    journal.close()
    journal.close()
    for calls in ([call("act")], [call("act", "c1"), call("act", "c2")]):
        with pytest.raises(OSError, match="the journal is closed"):
            answers([act], calls, journal=journal)
    assert ran == []


def test_a_crash_leaves_what_was_interrupted(tmp_path):
    path = tmp_path / "j"
    script = f"""
        import asyncio, os, signal
        from ferrule.conversation import ToolCall
        from ferrule.execution import Executor, FileJournal
        from ferrule.tools.registry import ToolRegistry
        from ferrule.tools.scope import CallScope
        from ferrule.tools.decorator import tool

        @tool
        async def fine() -> str:
            "End."
            return ""

        @tool
        async def crash(amount: int) -> str:
            "Die."
            os.kill(os.getpid(), signal.SIGKILL)

        async def main():
            async with ToolRegistry([fine, crash]).open() as bound:
                executor = Executor(bound, journal=FileJournal({str(path)!r}, who="them"))
                await executor.run(ToolCall("c1", "fine", ""), CallScope())
                await executor.run(ToolCall("c2", "crash", '{{"amount": 5}}'), CallScope())

        asyncio.run(main())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL
    (found,) = find_interrupted(path)
    assert (found.call_id, found.tool, found.arguments, found.who) == ("c2", "crash", {"amount": 5}, "them")


def test_a_torn_line_costs_itself_alone(tmp_path):
    path = tmp_path / "j"
    with FileJournal(path) as journal:
        journal.record("started", "k1", {"call": "c1", "tool": "t", "arguments": {}})
    with path.open("ab") as file:
        file.write(b'{"event": "finished", "key": "k1", "st')
    with FileJournal(path) as journal:
        journal.record("started", "k2", {"call": "c2", "tool": "t", "arguments": {}})
    assert [one.call_id for one in find_interrupted(path)] == ["c1", "c2"]


def test_the_same_call_ids_in_one_journal_are_told_apart(tmp_path):
    with FileJournal(tmp_path / "j") as one, FileJournal(tmp_path / "j") as other:
        answers([fetch], [call("fetch", url="a")], journal=one)
        other.record("started", other.make_key(), {"call": "call_1", "tool": "fetch", "arguments": {"url": "b"}})
    assert [one.arguments for one in find_interrupted(tmp_path / "j")] == [{"url": "b"}]


def test_lines_of_many_threads_stay_whole(tmp_path):
    with FileJournal(tmp_path / "j") as journal:

        def write():
            for _ in range(200):
                journal.record("started", journal.make_key(), {"call": "c", "tool": "t", "arguments": {"x": "y" * 500}})

        threads = [threading.Thread(target=write) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    lines = read_entries(tmp_path / "j")
    assert len({line["key"] for line in lines}) == 800


def test_a_full_disk_is_an_error(tmp_path):
    if not os.path.exists("/dev/full"):  # noqa: PTH110
        pytest.skip("/dev/full is missing")
    with FileJournal("/dev/full") as journal, pytest.raises(OSError, match="No space"):
        journal.record("started", "k", {})


NAMES = ["api_key", "apiKey", "OPENAI_API_KEY", "token", "access_token", "password", "Authorization", "client-secret"]
NAMES += [
    "x-api-key",
    "set-cookie",
    "privateKey",
    "db_passwd",
    "refreshTokens",
    "tokens",
    "pass",
    "dbPass",
    "DB_PASS_2",
]
NAMES += [
    "SSHPASS",
    "pwd",
    "jwt",
    "id_jwt",
    "proxy_auth",
    "AccountKey",
    "SharedAccessKey",
    "STORAGE_KEY",
    "SECRET_KEY_BASE",
]


@each_case("name", NAMES)
def test_secrets_are_scrubbed_by_name_at_any_depth(name):
    headers = [{"name": name, "value": "hidden"}, {"Name": name, "Value": "hidden"}, {"Key": name, "Value": "hidden"}]
    headers += [{"k": name, "v": "hidden"}, {"field": name, "text": "hidden"}]
    pairs = [[name, "hidden"], ["Accept", "shown"]]
    value = {"a": [{name: "hidden", "kept": "shown"}, *headers, pairs, f"{name}=hidden", f'"{name}": "hidden words"']}
    value |= {"argv": ["run", f"--{name}", "hidden", "shown"], "json": json.dumps(headers), "one": [name, "hidden"]}
    text = json.dumps(scrub_secrets(value))
    assert "hidden" not in text
    assert text.count("shown") == 3
    assert "hidden" not in json.dumps(scrub_secrets({name: {"deep": ["hidden"]}}))


COUNTS = ["max_tokens", "tokens", "pass"]
PLAIN = ["tokenizer", "key", "keyboard", "author", "path", "session", "cert", "primary_key", "public_key", "sort_key"]
PLAIN += ["pass_rate", "bypass", "compass", "token_count", "authority", "passed", "monkey"]


@each_case("name", [*COUNTS, *PLAIN])
def test_what_only_sounds_like_a_secret_stays(name):
    assert scrub_secrets({name: 5, f"{name}s": [[name, 7]]}) == {name: 5, f"{name}s": [[name, 7]]}
    if name not in COUNTS:
        for value in (
            {name: "shown"},
            {"name": name, "value": "shown"},
            [name, "shown"],
            f"{name}=shown {name}: shown",
        ):
            assert scrub_secrets(value) == value
    else:
        assert scrub_secrets({name: [1, 2]}) == {name: [1, 2]}
    assert scrub_secrets({"password": None, "token": True}) == {"password": None, "token": True}


@each_case(
    ("text", "kept"),
    [
        ("curl -H 'Authorization: Bearer hidden' https://x", "curl -H 'Authorization: Bearer [scrubbed]' https://x"),
        ("API_KEY=hidden make", "API_KEY=[scrubbed] make"),
        ("https://x/?token=hidden&page=2", "https://x/?token=[scrubbed]&page=2"),
        ('{"password": "hidden"}', '{"password": "[scrubbed]"}'),
        ("login --password hidden now", "login --password [scrubbed] now"),
        ("AccountName=a;AccountKey=hidden==;Suffix=b", "AccountName=a;AccountKey=[scrubbed];Suffix=b"),
        ("postgres://me:hidden@db/x https://b@c/d", "postgres://me:[scrubbed]@db/x https://b@c/d"),
        ("password='two hidden' words", "password='[scrubbed]' words"),
        ('echo "{\\"jwt\\": \\"hidden\\"}"', 'echo "{\\"jwt\\": \\"[scrubbed]\\"}"'),
        ("password => 'hidden', pass := hidden", "password => '[scrubbed]', pass := [scrubbed]"),
        ("curl -H 'Cookie: a=b; sid=hidden' x", "curl -H 'Cookie: [scrubbed]' x"),
        ("Authorization: Digest hidden", "Authorization: Digest [scrubbed]"),
        ("https://x/y?key=hiddenhiddenhidden&key=b", "https://x/y?key=[scrubbed]&key=b"),
        ("run --db-pass hidden --pass-rate 5", "run --db-pass [scrubbed] --pass-rate 5"),
        ("curl -u me:hidden -H x", "curl -u me:[scrubbed] -H x"),
        (
            "run -u 1000:1000 x; a basic problem; Basic bWU6aGlkZQ==",
            "run -u 1000:1000 x; a basic problem; Basic [scrubbed]",
        ),
        ("Incorrect API key provided: hidden. Sort key: a", "Incorrect API key provided: [scrubbed] Sort key: a"),
        ("<a:password>hidden words</a:password><pass>", "<a:password>[scrubbed]</a:password><pass>"),
        ('password = """hidden"""', 'password = """[scrubbed]"""'),
        ("-----BEGIN RSA PRIVATE KEY-----\nhid\nden\n-----END", "-----BEGIN RSA PRIVATE KEY-----[scrubbed]-----END"),
        ("https://ghp_hiddenhiddenhidden@x/y ssh://git@x/y", "https://[scrubbed]@x/y ssh://git@x/y"),
        ("https://x/?X-Amz-Signature=hiddenhiddenhidden", "https://x/?X-Amz-Signature=[scrubbed]"),
        ("12 tests pass: 3 of them; auth=true, bypass=1, max_tokens=100",) * 2,
        ("the tokenizer reads tokens", "the tokenizer reads tokens"),
        ("count the tokens of this", "count the tokens of this"),
    ],
)
def test_secrets_inside_text_are_scrubbed_where_a_name_stands_before_them(text, kept):
    assert scrub_text(text) == kept


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_scrubbing_keeps_the_shape(value):
    json.dumps(scrub_secrets(value))


def test_long_arguments_are_cut(tmp_path):
    with FileJournal(tmp_path / "j") as journal:
        answers([fetch], [call("fetch", url="x" * 1_000_000)], journal=journal)
    assert (tmp_path / "j").stat().st_size < 20_000


def test_an_executor_without_a_journal_writes_nothing(tmp_path):
    import asyncio

    async def run():
        async with ToolRegistry([fetch]).open() as bound:
            return await Executor(bound).run(call("fetch", url="a"), CallScope())

    assert asyncio.run(run()).text == "page"
    assert list(tmp_path.iterdir()) == []


def test_names_of_secrets_without_values_take_time_linear_in_their_number():
    """Quadratic time would be minutes here."""
    for text in ("password" * 5_000, "api_key" * 5_000):
        assert scrub_secrets({"text": text}, None) == {"text": text}
