"""What servers ask of their client: a person's answers, and messages of the model."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_calls import result_of

from ferrule import ToolFailed, model
from ferrule.execution import FileJournal, Policy, Rule
from ferrule.execution.journal import read_entries
from ferrule.mcp import MCPServer
from ferrule.mcp.requests import ElicitationRequest, SamplingAnswer, SamplingRequest
from ferrule.models.scripted import ScriptedModel
from ferrule.session import server_requests
from ferrule.session.approvals import AllowAll, DenyAll, Permissions
from ferrule.session.server_requests import ServerRequests
from ferrule.session.servers import SessionServers
from ferrule.session.terminal.approver import TerminalApprover

ASKING = [sys.executable, "-S", str(Path(__file__).with_name("asking_server.py"))]


async def ask(name: str, **options: Any) -> Any:
    async with MCPServer(ASKING, name="asking", **options) as server:
        return json.loads((await result_of(server, name)).text)


async def test_only_what_is_supplied_is_declared_and_answered() -> None:
    async def elicit(request: ElicitationRequest) -> dict[str, Any] | str:
        assert request.server == "asking"
        return {"name": "Ada", "news": True} if request.url is None else "decline"

    async def sample(request: SamplingRequest) -> SamplingAnswer:
        assert [message.role for message in request.conversation.messages] == ["system", "user"]
        if request.max_tokens > 4000:
            raise ToolFailed("too long")
        raise AssertionError

    assert await ask("capabilities") == {}
    assert set(await ask("capabilities", elicit=elicit)) == {"elicitation"}
    assert set(await ask("capabilities", elicit=elicit, sample=sample)) == {"elicitation", "sampling"}
    assert await ask("form", elicit=elicit) == {
        "action": "accept",
        "content": {"name": "Ada", "news": True, "colour": "blue"},
    }
    assert await ask("open", elicit=elicit) == {"action": "decline"}
    assert (await ask("sample", sample=sample))["message"] == "too long"


def session_requests(typed: str = "", **options: Any) -> tuple[ServerRequests, io.StringIO]:
    shown = io.StringIO()
    options.setdefault("approver", TerminalApprover(io.StringIO(typed), shown))
    scripted = options.pop("scripted", ScriptedModel("Hello."))
    return ServerRequests(model(scripted), Permissions(**options)), shown


async def test_a_person_is_asked_for_each_field_until_it_fits() -> None:
    requests, shown = session_requests("A\nAda\nold\n36\n\nmaybe\nyes\nmon,tue\ny\n")
    answered = await ask("form", elicit=requests.elicit)
    wanted = {"name": "Ada", "age": 36, "colour": "blue", "news": True, "days": ["mon", "tue"]}
    assert answered == {"action": "accept", "content": wanted}
    text = shown.getvalue()
    assert text.startswith("▸ the MCP server asking asks\n  Who is there?\n  \\x1b[31mred\n")
    assert "  name (string; required)  Who you are\n  > " in text
    assert "'A' is too short" in text
    assert "  colour (one of red, blue; Enter for blue)\n" in text
    assert "  send this answer? [y]es, [n]o: " in text


async def test_formats_are_checked_and_choices_are_shown_by_their_titles() -> None:
    wrong = ["ada", "12.1.2026", "2026-02-30", "tomorrow", "2026-01-01T00:00:00", "example.com", "huge", "Green"]
    typed = [wrong[0], "ada@example.com", *wrong[1:3], "2026-02-28", *wrong[3:5], "", wrong[5], "https://example.com"]
    typed += [wrong[6], "small", wrong[7], "#00F", "Monday, tue", "", "y"]
    requests, shown = session_requests("\n".join([*typed, ""]))
    answered = await ask("formats", elicit=requests.elicit)
    assert answered["content"] == {
        "mail": "ada@example.com",
        "day": "2026-02-28",
        "at": "2026-01-01T00:00:00Z",
        "site": "https://example.com",
        "size": "s",
        "colour": "#00f",
        "days": ["mon", "tue"],
        "news": True,
    }
    text = shown.getvalue()
    assert "'ada' is no email; write it as ada@example.com" in text
    assert "'2026-01-01T00:00:00' is no date-time; write it as 2026-11-28T09:00:00Z" in text
    assert "  size (one of Small, Large; Enter for Large)\n" in text
    assert "  colour (one of Red, Blue; required)\n" in text
    assert "  days (some of Monday, Tuesday, separated by commas; Enter for Tuesday)\n" in text
    assert "  news (boolean; Enter for yes)\n" in text
    assert sum(one in text for one in wrong) == len(wrong)


@pytest.mark.parametrize(
    ("typed", "action"),
    [("/no\n", "decline"), ("/cancel\n", "cancel"), ("", "cancel"), ("Ada\n\n\nyes\n\nn\n", "decline")],
)
async def test_a_person_may_decline(typed: str, action: str) -> None:
    requests, _ = session_requests(typed)
    assert await ask("form", elicit=requests.elicit) == {"action": action}


async def test_an_address_is_shown_and_never_opened() -> None:
    requests, shown = session_requests("y\n")
    assert await ask("open", elicit=requests.elicit) == {"action": "accept"}
    assert "open this address, if you trust the server: https://example.org/x" in shown.getvalue()


async def test_the_model_is_asked_under_policy_journal_and_limits(tmp_path: Path, monkeypatch) -> None:
    scripted = ScriptedModel("Hello.")
    with FileJournal(tmp_path / "calls.jsonl") as journal:
        requests, shown = session_requests("y\n", scripted=scripted, journal=journal)
        answered = await ask("sample", sample=requests.sample)
    assert (answered["content"], answered["stopReason"]) == ({"type": "text", "text": "Hello."}, "endTurn")
    assert [message.text for message in scripted.seen[0].messages] == ["Be short.", "Say hello."]
    assert "▸ sample_model asks to run" in shown.getvalue()
    assert "│ user: Say hello." in shown.getvalue()
    started, finished = read_entries(tmp_path / "calls.jsonl")
    assert (started["tool"], started["arguments"]) == ("sample_model", {"server": "asking", "max_tokens": 4096})
    assert finished["status"] == "ok"

    refused, _ = session_requests(approver=AllowAll(), policy=Policy((Rule("deny", "sample_*", reason="too dear"),)))
    assert (await ask("sample", sample=refused.sample))["message"] == "denied: too dear"

    monkeypatch.setattr(server_requests, "MOST_REQUESTS", 0)
    assert "answers no more" in (await ask("sample", sample=refused.sample))["message"]


@pytest.mark.parametrize(
    ("permissions", "declared"),
    [
        (Permissions(approver=DenyAll()), set()),
        (Permissions(approver=DenyAll(), policy=Policy((Rule("allow", "sample_model"),))), {"sampling"}),
        (Permissions(approver=AllowAll()), {"sampling"}),
        (Permissions(approver=TerminalApprover(io.StringIO())), {"elicitation", "sampling"}),
    ],
)
async def test_a_session_declares_what_somebody_can_answer(permissions: Permissions, declared: set[str]) -> None:
    async def read(requests: ServerRequests) -> set[str]:
        answers = requests.answers
        return set(await ask("capabilities", elicit=answers.elicit, sample=answers.sample))

    assert await read(ServerRequests(model(ScriptedModel("x")), permissions)) == declared
    # The embedded model was trained to call tools, not to write what a server asks for.
    assert await read(ServerRequests(model("embedded"), permissions)) == declared - {"sampling"}


async def test_the_servers_of_a_session_ask_it() -> None:
    requests, _ = session_requests("y\n")
    servers = SessionServers([" ".join(ASKING)], 30, requests)
    await servers.open()
    try:
        (server,) = servers._servers
        assert (await asyncio.wait_for(result_of(server, "open"), 30)).text == '{"action": "accept"}'
    finally:
        await servers.close()
