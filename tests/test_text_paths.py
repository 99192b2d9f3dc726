"""Whatever takes a path takes it as a text too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ferrule import BlobStore, FileJournal, Policy, ScriptedModel, Store, ToolCall, call_tool, model, python_tool, tool
from ferrule.analysis.data.sources import DataSource
from ferrule.analysis.recording import record_analysis, replay_analysis
from ferrule.builtin_tools import PythonSession
from ferrule.coding.agent import make_agent
from ferrule.embedded import find_embedded_folder
from ferrule.errors import SandboxInputError
from ferrule.execution import read_policy
from ferrule.models.checkpoints.loading import load_local_model, read_tokenizer
from ferrule.session.persistence import StoreOptions, find_store_path, open_autosave
from ferrule.session.project import load_project
from ferrule.session.session import Session
from ferrule.tokens.tokenizer import ByteTokenizer
from ferrule.tools.intent import Effect, Intent
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope
from ferrule.toolspec import ToolSpec

MODEL = str(find_embedded_folder())


@tool
def find_workspace(scope: CallScope) -> str:
    """Tell the workspace."""
    assert isinstance(scope.workspace, Path)
    return str(scope.workspace)


def judge(folder: str) -> str:
    intent = Intent((Effect("write", f"{folder}/a.txt"),))
    return Policy(profile="accept-edits").judge(ToolSpec("edit", "", {}), {}, intent, folder).action


def run_in(folder: str) -> str:
    asked = model(ScriptedModel(ToolCall("a", "find_workspace", {}), "Done.")).chat("?")
    run = asked.using(find_workspace, workspace=folder).run_sync()
    return run.conversation.messages[2].result.text


def store_blob(folder: str) -> bytes | None:
    return BlobStore(folder).get(BlobStore(folder).put(b"x"))


def autosave(folder: str) -> str:
    with open_autosave(StoreOptions(store=f"{folder}/talks.db", folder=folder)) as opened:
        return str(opened.folder)


CASES: list[tuple[Callable[[str], Any], Callable[[str], Any]]] = [
    (store_blob, lambda _: b"x"),
    (run_in, lambda folder: folder),
    (judge, lambda _: "allow"),
    (autosave, lambda folder: folder),
    (lambda folder: find_store_path(f"{folder}/x.db"), lambda folder: Path(folder, "x.db")),
    (lambda folder: load_project(folder).problems, lambda _: ()),
    (lambda folder: Session(model("echo"), workspace=folder).pipeline.options.workspace, Path),
    (lambda folder: find_workspace.with_folders(folder).folders, lambda folder: (Path(folder),)),
    (lambda folder: DataSource(f"{folder}/sales.csv").table_name, lambda _: "sales"),  # type: ignore[arg-type]
    (lambda folder: make_agent(ScriptedModel(), folder, added=[folder]).model.name, lambda _: "scripted"),
    (lambda folder: Store(f"{folder}/x.db").list(), lambda _: ()),
    (lambda folder: str(FileJournal(f"{folder}/calls").path), lambda folder: f"{folder}/calls"),
    (lambda _: load_local_model(MODEL).name, lambda _: f"local:{MODEL}"),
    (lambda _: read_tokenizer(f"{MODEL}/tokenizer.json").encode_text("a") != [], lambda _: True),
]


@pytest.mark.parametrize(("use", "expected"), CASES)
def test_a_path_may_be_a_text(use: Callable[[str], Any], expected: Callable[[str], Any], tmp_path: Path) -> None:
    assert use(str(tmp_path)) == expected(str(tmp_path))


def test_a_recording_of_an_analysis(tmp_path: Path) -> None:
    for open_recording in (replay_analysis, lambda path: record_analysis(None, continues=path)):
        with pytest.raises(OSError, match="No such file"):
            open_recording(f"{tmp_path}/missing.jsonl")


async def test_a_single_call_has_its_workspace(tmp_path: Path) -> None:
    assert (await call_tool(find_workspace, workspace=str(tmp_path))).text == str(tmp_path)


def test_a_file_of_rules_and_of_tools_and_of_tokens(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('profile = "plan"')
    assert read_policy(f"{tmp_path}/policy.toml").profile == "plan"
    assert ToolRegistry.discover(str(tmp_path)).names == ()
    with pytest.raises(Exception, match="can't be read as a tokenizer"):
        ByteTokenizer(f"{tmp_path}/policy.toml")
    tokenizers = pytest.importorskip("ferrule.tokens.hugging_face")
    for path in (MODEL, f"{MODEL}/tokenizer.json"):
        assert tokenizers.HuggingFaceTokenizer(path).vocabulary_size > 256


def test_a_file_that_code_may_read(tmp_path: Path) -> None:
    data = tmp_path / "sales.csv"
    data.write_text("a\n")
    for mounts in ([str(data)], [data], str(data)):
        made = python_tool(mounts=mounts)
        assert made.description.endswith("These are at hand: sales.csv.")
        assert PythonSession(mounts=mounts)._mounts[0].shown_name == "sales.csv"
    for wrong in ([5], {"sales.csv": str(data)}):
        with pytest.raises(SandboxInputError, match=r"mounts must be paths or Mount\(path, name\), not"):
            python_tool(mounts=wrong)  # type: ignore[arg-type]
