"""Defaults from the user's configuration file and environment, what the command line overrides, and `--cost`."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from pathlib import Path

import openai_server
import pytest
from terminals import assert_refused, ferrule

from ferrule.cli.session_options import SessionOptions
from ferrule.cli.settings import UserSettings

COST = re.compile(
    r"ferrule: 20 tokens read \(8 of them cached\), 5 written; "
    r"first token after \d+\.\d\d s, \d+\.\d\d s in all; \$0\.0178\n"
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config" / "ferrule" / "config.toml"


def configured(config: Path, text: str, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(text)
    return ferrule(*arguments, folder=config.parents[2], XDG_CONFIG_HOME=str(config.parents[1]), **changes)


def test_every_key_is_an_option() -> None:
    assert set(UserSettings.model_fields) - {"prices", "analyze"} <= set(SessionOptions.__dataclass_fields__)


def test_the_command_line_overrides_the_environment_and_that_the_file(config: Path, reckoner: str) -> None:
    text = 'model = "nobody:x"\n'
    assert_refused(configured(config, text, "ask", "Hi"), "nobody:x")
    assert_refused(configured(config, text, "ask", "Hi", FERRULE_MODEL="nobody:y"), "nobody:y")
    assert configured(config, text, "ask", "Hi", "-m", "echo", FERRULE_MODEL="nobody:y").stdout == "Hi\n"
    assert configured(config, 'model = "echo"', "ask", "Hi").stdout == "Hi\n"
    assert "default: echo]" in " ".join(configured(config, 'model = "echo"', "ask", "-h").stdout.split())


def test_paths_are_relative_to_the_file(config: Path) -> None:
    text = 'model = "echo"\nstore = "kept.db"\nsystem = "Be brief."\ntools = ["voices.py"]\n'
    config.parent.mkdir(parents=True)
    (config.parent / "voices.py").write_text(
        "from ferrule import tool\n\n\n@tool\ndef shout(text: str) -> str:\n    'Shout.'\n    return text\n"
    )
    done = configured(config, text, "ask", "Hi")
    assert (done.returncode, done.stdout) == (0, "Hi\n")
    assert (config.parent / "kept.db").is_file()
    assert "3 messages  Hi" in configured(config, text, "history").stdout
    asked = configured(config, text, "ask", "Hi", "-m", "embedded", "--no-tools")
    assert_refused(asked, "was trained to call tools; name one with --tools, leave out --no-tools")


async def test_an_address_is_only_for_the_model_beside_it(config: Path) -> None:
    async with openai_server.server(openai_server.says("Hello."), judge=openai_server.lenient) as server:
        text = f'model = "vllm:m"\nbase_url = "{server.url}/v1"\n'
        assert (await asyncio.to_thread(configured, config, text, "ask", "Hi")).stdout == "Hello.\n"
        # The key of another provider is not sent there.
        done = await asyncio.to_thread(configured, config, text, "ask", "Hi", "-m", "compatible:other")
        assert_refused(done, "compatible:other", "--base-url")
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("modle = 'echo'", ("unknown setting 'modle'; the nearest: ",)),
        ("yes = true", ("unknown setting 'yes'",)),
        ("temperature = 'hot'", ("temperature: must be a valid number, not 'hot'",)),
        ("temperature = -1", ("temperature", "greater than or equal to 0")),
        ("tools = 'python'", ("tools: must be a valid list",)),
        ("model = ", ("not TOML",)),
    ],
)
def test_what_the_file_can_not_say(config: Path, text: str, words: tuple[str, ...]) -> None:
    assert_refused(configured(config, text, "ask", "Hi"), str(config), *words)


def test_a_named_file_must_exist_and_a_project_has_none(config: Path, tmp_path: Path) -> None:
    assert_refused(ferrule("ask", "Hi", FERRULE_CONFIG=str(tmp_path / "mine.toml")), "mine.toml", "No such file")
    other = tmp_path / "other.toml"
    other.write_text('model = "echo"\n')
    assert ferrule("ask", "Hi", FERRULE_CONFIG=str(other)).stdout == "Hi\n"
    for name in ("config.toml", ".ferrule/config.toml"):
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('model = "nobody:x"\n')
    assert ferrule("ask", "Hi", "-m", "echo", folder=tmp_path / "project").stdout == "Hi\n"
    assert ferrule("ask", "What is 7 + 8?", folder=tmp_path / "project").returncode == 0
    (tmp_path / "project" / "ferrule.toml").write_text('model = "nobody:x"\n')
    assert_refused(ferrule("ask", "Hi", "-m", "echo", folder=tmp_path / "project"), "ferrule.toml", "model")


async def test_what_an_answer_cost(config: Path, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text('["vllm:m"]\ninput = 1000\ncached_input = 100\noutput = 1000\n')
    answers = [openai_server.says("Hello.")] * 2
    async with openai_server.server(*answers, judge=openai_server.lenient) as server:
        text = f'model = "vllm:m"\nbase_url = "{server.url}/v1"\ncost = true\nprices = "{tmp_path}/prices.toml"\n'
        done = await asyncio.to_thread(configured, config, text, "ask", "Hi")
        assert done.stdout == "Hello.\n"
        assert COST.fullmatch(done.stderr), done.stderr
        done = await asyncio.to_thread(configured, config, text, "ask", "Hi", "--json")
    cost, finished = (json.loads(line) for line in done.stdout.splitlines()[-2:])
    assert (cost["event"], finished["event"]) == ("cost", "finished")
    assert cost["tokens"] == finished["tokens"] == {"prompt": 20, "cached": 8, "sampled": 5}
    assert cost["dollars"] == pytest.approx(0.0178)
    assert 0 <= cost["first_token_seconds"] <= cost["seconds"]
