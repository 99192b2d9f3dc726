"""Checkpoints on the command line: what is chosen for one, the options of a model, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from terminals import assert_refused, ferrule

from ferrule.cli.settings import read_model_options
from ferrule.errors import SettingsError


def test_the_description_says_what_is_chosen_and_why(reckoner: str) -> None:
    done = ferrule("models", reckoner)
    assert (done.returncode, done.stderr) == (0, "")
    lines = {line[:15].strip(): line[15:] for line in done.stdout.splitlines()[1:]}
    assert lines["family"] == "qwen3 (Qwen3ForCausalLM)"
    assert lines["engine"].startswith("numpy: it is small: ")
    assert lines["computes"] == "in float32 on cpu"
    assert lines["notation"] == "nanochat: the tokenizer has its control tokens, as <|bos|>, <|user_start|>"
    assert lines["stops at"].startswith("<|assistant_end|> (")
    assert lines["a call"] == "<|python_start|>12 * 34<|python_end|>"
    found = json.loads(ferrule("models", reckoner, "--json").stdout)
    assert (found["name"], found["engine"], found["dialect"]) == (reckoner, "numpy", "nanochat")
    assert found["context_length"] == 2048
    assert found["problems"] == []


def test_the_description_knows_what_is_chosen_by_options(reckoner: str) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    options = ("--model-option", "dtype=float32", "--model-option", "context_length=300")
    found = json.loads(ferrule("models", reckoner, "--json", *options).stdout)
    assert (found["engine"], found["engine_reason"]) == ("transformers", "dtype is an option of transformers")
    assert (found["dtype"], found["context_length"]) == ("float32", 300)


def test_a_folder_without_local_is_suggested_with_it(reckoner: str) -> None:
    folder = Path(reckoner.removeprefix("local:"))
    done = ferrule("ask", "Hi", "--model", folder.name, folder=folder.parent)
    assert_refused(done, f"did you mean local:{folder.name}?")


def test_an_engine_that_is_named_is_checked(reckoner: str, tmp_path: Path) -> None:
    folder = shutil.copytree(reckoner.removeprefix("local:"), tmp_path / "scaled")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "attention_bias": True}))
    for engine, problem in (
        ("numpy", "attention_bias True is not computed"),
        ("vllm", "neither numpy nor transformers"),
    ):
        done = ferrule("models", f"local:{folder}", "--json", "--model-option", f"engine={engine}")
        assert done.returncode == 1
        assert problem in json.loads(done.stdout)["problems"][0]


def test_what_is_missing_is_told_with_all_that_is_known(reckoner: str, tmp_path: Path) -> None:
    folder = shutil.copytree(reckoner.removeprefix("local:"), tmp_path / "part")
    (folder / "model.safetensors").unlink()
    (folder / "tokenizer.json").unlink()
    done = ferrule("models", f"local:{folder}")
    assert done.returncode == 1
    assert "family       qwen3" in done.stdout
    assert "problem      " + f"{folder} contains no model: model.safetensors is missing" in done.stdout
    assert f"{folder} contains no model: tokenizer.json is missing" in done.stdout
    assert done.stderr == ""


def test_options_of_a_model(reckoner: str, tmp_path: Path) -> None:
    def ask(*options: str, **changes: str):
        return ferrule("ask", "Hi", "--model", reckoner, "--max-tokens", "3", "--seed", "1", *options, **changes)

    assert ask("--model-option", "context_length=300", "--model-option", "engine=numpy").returncode in (0, 1)
    assert_refused(ask("--model-option", "context_length=9000"), "context_length 9000 is not between 1 and 2048")
    assert_refused(ask("--model-option", "engine=numpy", "--model-option", "dtype=float32"), "engine='transformers'")
    assert_refused(ask("--model-option", "dtpe=float32"), "no option 'dtpe'; those of its engine are max_batch")
    assert_refused(ask("--model-option", "dtype"), "--model-option dtype: write it as NAME=VALUE")
    assert_refused(ferrule("models", "openai", "--model-option", "a=b"), "--model-option is for a checkpoint")
    config = tmp_path / "config.toml"
    config.write_text(f'model = "{reckoner}"\n[model_options]\ncontext_length = 9000\n')
    done = ferrule("ask", "Hi", FERRULE_CONFIG=str(config))
    assert_refused(done, "context_length 9000 is not between 1 and 2048")
    # They are the options of that model, and no other's.
    assert ferrule("ask", "Hi", "--model", "echo", FERRULE_CONFIG=str(config)).stdout == "Hi\n"


def test_an_option_that_is_given_otherwise_is_refused() -> None:
    assert read_model_options(["dtype=float32", "max_batch=4", "strict_tools=true", 'device_map="cpu"']) == {
        "dtype": "float32",
        "max_batch": 4,
        "strict_tools": True,
        "device_map": "cpu",
    }
    for name, instead in (("base_url", "--base-url"), ("api_key", "ferrule keys set"), ("record", "--record")):
        with pytest.raises(SettingsError, match=instead):
            read_model_options([f"{name}=x"])
