"""Checkpoints by name, from a hub on loopback that speaks what the hub's own client asks, and from its cache."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_server import GATED, Hub, run_hub
from memorised import memorise
from terminals import assert_refused, ferrule

pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")

NAME = "acme/tiny"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows one answer, with files beside it that nobody needs."""
    from ferrule.conversation import Conversation, assistant, user

    folder = tmp_path_factory.mktemp("tiny")
    memorise(folder, [Conversation((user("Hello"), assistant("Good day.")))])
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    (folder / "modeling_tiny.py").write_text("raise SystemExit")
    (folder / "original").mkdir()
    (folder / "original" / "consolidated.safetensors").write_bytes(b"the same, for others")
    return folder


@pytest.fixture
def hub(checkpoint: Path) -> Iterator[Hub]:
    with run_hub() as hub:
        hub.repositories[NAME] = checkpoint
        yield hub


def variables(hub: Hub | None, cache: Path, **changes: str) -> dict[str, str]:
    address = "http://127.0.0.1:9" if hub is None else hub.url
    return {"HF_ENDPOINT": address, "HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1", "HF_TOKEN": "", **changes}


def ask(hub: Hub | None, cache: Path, *options: str, **changes: str):
    return ferrule("ask", "Hello", "--model", f"local:{NAME}", *options, **variables(hub, cache, **changes))


def test_a_model_is_downloaded_once_and_then_found_offline(hub: Hub, tmp_path: Path) -> None:
    done = ask(hub, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Good day.\n", "")
    fetched = {request.rpartition("/")[2] for request in hub.requests if "/resolve/" in request}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= fetched
    assert not fetched & {"pytorch_model.bin", "modeling_tiny.py", "consolidated.safetensors"}
    files = {path.name for path in (tmp_path / "hub" / "models--acme--tiny" / "snapshots").glob("*/*")}
    assert files == fetched
    for address, offline in ((hub, "1"), (None, "0")):
        done = ask(address, tmp_path, HF_HUB_OFFLINE=offline)
        assert (done.returncode, done.stdout) == (0, "Good day.\n"), done.stderr


def test_a_name_is_described_without_its_weights(hub: Hub, tmp_path: Path) -> None:
    done = ferrule("models", f"local:{NAME}", "--json", **variables(hub, tmp_path))
    found = json.loads(done.stdout)
    assert found["problems"] == ["the weights are not downloaded yet; they are as soon as the model is used"]
    assert (found["notation"], found["weights"]) == ("nanochat", None)
    assert not any("safetensors" in request for request in hub.requests)
    ask(hub, tmp_path)
    found = json.loads(ferrule("models", f"local:{NAME}", "--json", **variables(hub, tmp_path)).stdout)
    assert (found["engine"], found["problems"]) == ("numpy", [])


def test_a_revision_is_asked_for(hub: Hub, tmp_path: Path) -> None:
    done = ask(hub, tmp_path, "--model-option", "revision=v9")
    assert_refused(done, "acme/tiny has no revision 'v9'")
    assert ask(hub, tmp_path, "--model-option", "revision=main").stdout == "Good day.\n"


@pytest.mark.parametrize("status", [401, 403])
def test_a_gated_model_is_one_line(hub: Hub, tmp_path: Path, status: int) -> None:
    hub.refusals[NAME] = (status, GATED)
    assert_refused(ask(hub, tmp_path), "acme/tiny is gated", f"{hub.url}/acme/tiny", "HF_TOKEN")


def test_a_model_that_is_not_there_is_one_line(hub: Hub, tmp_path: Path) -> None:
    hub.repositories.clear()
    assert_refused(ask(hub, tmp_path), "acme/tiny is neither a folder here nor a model at", "HF_TOKEN")
    hub.refusals[NAME] = (404, {})
    assert_refused(ask(hub, tmp_path), "acme/tiny is neither a folder here nor a model at")


def test_a_hub_that_fails_or_can_not_be_reached_is_one_line(hub: Hub, tmp_path: Path) -> None:
    hub.refusals[NAME] = (500, {})
    for done, words in ((ask(hub, tmp_path), "500"), (ask(None, tmp_path), "can't be reached")):
        assert (done.returncode, done.stdout) == (3, ""), done
        assert len(done.stderr.splitlines()) == 1
        assert words in done.stderr
    done = ask(hub, tmp_path, HF_HUB_OFFLINE="1")
    assert_refused(done, "nor completely in the hub's cache", str(tmp_path), "HF_HUB_OFFLINE")


def test_what_is_neither_folder_nor_name_is_not_asked_for(hub: Hub, tmp_path: Path) -> None:
    for name in ("./missing", "/missing/there", "~/no/such", "a/b/c", "missing"):
        done = ferrule("ask", "Hello", "--model", f"local:{name}", folder=tmp_path, **variables(hub, tmp_path))
        assert_refused(done, f"the folder {name} is missing", "ORG/NAME")
    assert hub.requests == []
