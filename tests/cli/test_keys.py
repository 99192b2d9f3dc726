"""`ferrule keys`: keys in a file of the user's own, and who can read it."""

from __future__ import annotations

import asyncio
import json
import stat
import subprocess
from pathlib import Path

import openai_server
import pytest
from terminals import Terminal, assert_refused, ferrule

from ferrule.models.providers import PROVIDERS

KEY = "sk-test-of-the-file"
NO_KEYS = {name: "" for one in PROVIDERS.values() for name in (*one.keys, one.url) if name}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config"


def keys(config: Path, *arguments: str, typed: str = "", **changes: str) -> subprocess.CompletedProcess[str]:
    return ferrule("keys", *arguments, typed=typed, **{**NO_KEYS, "XDG_CONFIG_HOME": str(config), **changes})


def test_an_unknown_provider_gets_the_nearest_or_the_list() -> None:
    assert_refused(ferrule("keys", "set", "opnai"), "the nearest: openai")
    assert_refused(ferrule("keys", "set", "qqqqqqqq"), "there are ")


def test_a_key_is_saved_for_its_owner_alone_and_never_shown(config: Path) -> None:
    file = config / "ferrule" / "keys.json"
    assert keys(config, "list").stdout == "no keys; save one with: ferrule keys set PROVIDER\n"
    done = keys(config, "set", "groq", typed=f"{KEY}\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"saved in {file}\n", "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert json.loads(file.read_text()) == {"GROQ_API_KEY": KEY}
    assert keys(config, "set", "anthropic", typed="another").returncode == 0
    listed = keys(config)
    assert listed.stdout == keys(config, "list").stdout
    assert "groq              GROQ_API_KEY, from the file\n" in listed.stdout
    told = json.loads(keys(config, "list", "--json", GROQ_API_KEY="x").stdout)
    assert {"provider": "groq", "variable": "GROQ_API_KEY", "from": "environment"} in told["keys"]
    assert KEY not in listed.stdout + json.dumps(told)
    assert keys(config, "remove", "groq").returncode == 0
    assert_refused(keys(config, "remove", "groq"), "no key for groq is saved", str(file))
    assert json.loads(file.read_text()) == {"ANTHROPIC_API_KEY": "another"}


def test_a_key_that_is_typed_is_not_shown(config: Path) -> None:
    with Terminal("keys", "set", "openai", XDG_CONFIG_HOME=str(config), **NO_KEYS) as terminal:
        terminal.expect("Key for OpenAI (not shown): ")
        terminal.type(f"{KEY}\r")
        terminal.expect("saved in ")
        assert terminal.ended() == 0
        assert KEY not in terminal.shown
    assert json.loads((config / "ferrule" / "keys.json").read_text()) == {"OPENAI_API_KEY": KEY}


async def test_a_saved_key_is_used_where_the_environment_has_none(config: Path) -> None:
    keys(config, "set", "openai", typed=KEY)
    async with openai_server.server(*[openai_server.says("Hello.")] * 2, judge=openai_server.lenient) as server:
        for variable, sent in (("", KEY), ("sk-of-the-environment", "sk-of-the-environment")):
            done = await asyncio.to_thread(
                ferrule, "ask", "Hi", "-m", "openai:gpt-5", "--base-url", f"{server.url}/v1", "--no-tools",
                **{**NO_KEYS, "XDG_CONFIG_HOME": str(config), "OPENAI_API_KEY": variable},
            )  # fmt: skip
            assert (done.stdout, done.stderr) == ("Hello.\n", "")
            assert server.requests[-1].headers["authorization"] == f"Bearer {sent}"
    done = keys(config, "set", "openai", typed=KEY, OPENAI_API_KEY="x")
    assert done.stderr == "ferrule: OPENAI_API_KEY is set in the environment, and is used instead of the saved key\n"


async def test_advice_is_in_commands(config: Path) -> None:
    changes = {**NO_KEYS, "XDG_CONFIG_HOME": str(config)}
    done = ferrule("ask", "Hi", "-m", "openai:gpt-5", **changes)
    assert_refused(done, "no key for OpenAI: set OPENAI_API_KEY, or run: ferrule keys set openai")
    async with openai_server.server() as server:
        options = ("-m", "openai:gpt-5", "--base-url", f"{server.url}/v1")
        done = await asyncio.to_thread(ferrule, "ask", "Hi", *options, **{**changes, "OPENAI_API_KEY": "wrong"})
    assert_refused(done, "401", "check OPENAI_API_KEY, or run: ferrule keys set openai")
    done = ferrule("ask", "Hi", "-m", "vllm:m", "--base-url", "http://127.0.0.1:1/v1", **changes)
    assert "is the server running, and is --base-url right?" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "typed", "words"),
    [
        (("set", "opnai"), KEY, ("unknown provider 'opnai'", "openai")),
        (("set", "openai"), " \n", ("the key is empty",)),
        (("set", "openai"), "two words", ("one word of ASCII",)),
        (("set", "openai"), "schlüssel", ("one word of ASCII",)),
        (("remove", "openai"), "", ("no key for openai is saved",)),
    ],
)
def test_what_is_no_key_is_refused(
    config: Path, arguments: tuple[str, ...], typed: str, words: tuple[str, ...]
) -> None:
    assert_refused(keys(config, *arguments, typed=typed), *words)
    assert not (config / "ferrule" / "keys.json").exists()


def test_a_broken_file_is_named_and_kept_and_one_that_others_can_read_is_reported(config: Path) -> None:
    file = config / "ferrule" / "keys.json"
    file.parent.mkdir(parents=True)
    file.write_text("{broken")
    file.chmod(0o600)
    assert_refused(keys(config, "set", "openai", typed=KEY), str(file), "not JSON")
    assert file.read_text() == "{broken"
    file.write_text("{}")
    file.chmod(0o644)
    done = ferrule("ask", "Hi", "-m", "groq:x", **{**NO_KEYS, "XDG_CONFIG_HOME": str(config)})
    assert f"ferrule: {file} can be read by others; change that with: chmod 600 {file}\n" in done.stderr


def test_no_contained_command_reads_the_keys(config: Path, tmp_path: Path) -> None:
    """The file is hidden wherever the configuration is: in `XDG_CONFIG_HOME`, and in a workspace around it."""
    keys(config, "set", "openai", typed=KEY)
    for folder in (tmp_path / "work", tmp_path):
        folder.mkdir(exist_ok=True)
        done = ferrule(
            "call", "--tools", "shell", "--yes", "shell", "--command", f"cat {config}/ferrule/keys.json; echo end",
            folder=folder, XDG_CONFIG_HOME=str(config),
        )  # fmt: skip
        assert "end" in done.stdout, done
        assert KEY not in done.stdout + done.stderr
    code = f"open({str(config / 'ferrule' / 'keys.json')!r}).read()"
    done = ferrule("call", "--tools", "python", "--yes", "python", "--code", code, folder=tmp_path / "work")
    assert KEY not in done.stdout + done.stderr
