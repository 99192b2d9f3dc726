"""Checkpoints that are damaged, hostile or not for this engine: one error each, which says what to do."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="transformers is not installed")

import numpy as np
from safetensors.numpy import load_file, save_file

from ferrule.cli.checkpoint import format_checkpoint
from ferrule.errors import EngineError, FerruleError, ModelError, SettingsError, TokenizerError
from ferrule.models.checkpoints.description import describe_checkpoint
from ferrule.models.checkpoints.loading import load_local_model
from ferrule.tokens.tokenizer import make_byte_tokenizer_json
from tiny_checkpoints import write_tiny_checkpoint

TEMPLATE = Path(__file__).parents[1] / "dialects" / "templates" / "like_qwen3.jinja"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("whole"), "qwen3", TEMPLATE.read_text())


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "damaged"))


def change_config(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


def write(name: str, text: str | bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode()) and None


def remove(*names: str) -> Callable[[Path], None]:
    return lambda folder: [(folder / name).unlink() for name in names] and None


def change_tensors(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / "model.safetensors"
        tensors = load_file(path)
        change(tensors)
        save_file(tensors, path, {"format": "pt"})

    return apply


def write_index(**weight_map: Any) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / "model-1.safetensors")
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))

    return apply


def cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def pickle(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


HUGE = (2**40).to_bytes(8, "little")
NEGATIVE = json.dumps({"t": {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}}).encode()
NEGATIVE = len(NEGATIVE).to_bytes(8, "little") + NEGATIVE + bytes(8)
INDEX = r"model\.safetensors\.index\.json"

FILES = {
    "no config": (remove("config.json"), ModelError, r"contains no model: config\.json is missing"),
    "no tokenizer": (remove("tokenizer.json"), ModelError, r"contains no model: tokenizer\.json is missing"),
    "another tokenizer": (
        lambda folder: (folder / "tokenizer.json").rename(folder / "tokenizer.model"),
        ModelError,
        r"tokenizer\.model is a SentencePiece file, from which transformers can make it: AutoTokenizer",
    ),
    "a damaged tokenizer": (write("tokenizer.json", "{"), TokenizerError, r"tokenizer\.json can't be read"),
    "a template that is no Jinja": (write("chat_template.jinja", "{% if %}"), FerruleError, "line 1 of the chat temp"),
    "a config that is no JSON": (write("config.json", "{oops"), ModelError, r"config\.json is not JSON: .*download it"),
    "a config that is no object": (write("config.json", "[]"), ModelError, r"config\.json is not a JSON object"),
    "a config nested too deeply": (write("config.json", "[" * 100_000), ModelError, r"config\.json is not JSON"),
    "no weights": (remove("model.safetensors"), ModelError, r"contains no model: model\.safetensors is missing"),
    "a pickle": (pickle, ModelError, r"a pickle, pytorch_model\.bin, which can run any code .* convert it to safete"),
    "an adapter": (
        lambda folder: (folder / "model.safetensors").rename(folder / "adapter_model.safetensors"),
        ModelError,
        "holds an adapter, not a model; merge it",
    ),
    "a GGUF file": (
        lambda folder: (folder / "model.safetensors").rename(folder / "q4.gguf"),
        ModelError,
        r"q4\.gguf, which llama\.cpp runs",
    ),
    "weights that are cut off": (cut, ModelError, r"lies at bytes \d+ to \d+, but there are \d+ of data"),
    "a huge header": (write("model.safetensors", HUGE), ModelError, "its header does not fit in it; .* download"),
    "negative offsets": (write("model.safetensors", NEGATIVE), ModelError, "lies at bytes -8 to 0"),
    "an index that is no JSON": (
        lambda folder: (write_index()(folder), write(INDEX.replace("\\", ""), "{")(folder)),
        ModelError,
        rf"{INDEX} is not JSON",
    ),
    "an index without a map": (write_index(), ModelError, rf"{INDEX} has no weight_map"),
    "an index that leads upwards": (
        write_index(t="../whole/model.safetensors"),
        ModelError,
        r"names '\.\./whole/model\.safetensors', which is not a safetensors file of its folder",
    ),
    "an index with a path": (write_index(t="/etc/passwd"), ModelError, "names '/etc/passwd', which is not"),
    "an index with a pickle": (write_index(t="pytorch_model.bin"), ModelError, "names 'pytorch_model.bin', which is"),
    "an index of files that are missing": (
        write_index(t="model-2.safetensors"),
        ModelError,
        r"model-2\.safetensors is missing, which .*index\.json names",
    ),
    "an index of tensors that are missing": (
        write_index(t="model-1.safetensors"),
        ModelError,
        "t is in model-1.*isn't",
    ),
    "fewer ids than the weights have": (
        change_config(vocab_size=200),
        ModelError,
        r"config\.json: vocab_size is 200, but model\.embed_tokens\.weight has 320 rows",
    ),
    "no heads": (
        change_config(num_attention_heads=0),
        ModelError,
        "num_attention_heads must be a whole number from 1 up, not 0",
    ),
    "a count that is a word": (
        change_config(num_hidden_layers="four"),
        ModelError,
        "num_hidden_layers must be a whole number from 1 up, not 'four'",
    ),
    "a family that is not run": (
        change_config(model_type="mamba", architectures=["MambaForCausalLM"]),
        ModelError,
        "the family 'mamba' is not run; those that are: .*qwen3",
    ),
    "code of its own": (
        change_config(
            model_type="own",
            architectures=["Own"],
            auto_map={"AutoModelForCausalLM": "elsewhere/own--modeling_own.Own"},
        ),
        ModelError,
        r"the family 'own', which modeling_own\.py defines, is not run",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_folder_that_can_not_be_loaded_is_one_error(folder: Path, name: str) -> None:
    damage, kind, message = FILES[name]
    damage(folder)
    with pytest.raises(kind, match=message) as raised:
        load_local_model(folder)
    assert "\n" not in str(raised.value)
    if (folder / "config.json").exists() and name != "a template that is no Jinja":
        assert str(raised.value) in describe_checkpoint(str(folder), {}).problems


def test_of_a_family_that_is_not_run_nothing_is_said_that_it_could_do(whole: Path, folder: Path) -> None:
    change_config(model_type="mamba", architectures=["MambaForCausalLM"])(folder)
    rows = ("a call", "constrained", "can ")
    for checkpoint, is_run in ((whole, True), (folder, False)):
        lines = [line.strip() for line in format_checkpoint(describe_checkpoint(str(checkpoint), {}))]
        assert [any(line.startswith(row) for line in lines) for row in rows] == [is_run] * 3


def test_a_folder_without_a_template_says_what_to_add(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    assert load_local_model(folder).dialect.name == "hermes"  # of its control tokens
    shutil.copy(Path(folder / "tokenizer.json"), folder / "other.json")
    text = (folder / "tokenizer.json").read_text().replace("<|im_start|>", "<|turn|>")
    (folder / "tokenizer.json").write_text(text)
    with pytest.raises(ModelError, match=r"no chat template, .*; add its chat_template\.jinja, or name a dialect"):
        load_local_model(folder)


TEMPLATELESS = {
    "lfm2": (
        ("<|im_start|>", "<|im_end|>", "<|tool_call_start|>", "<|tool_call_end|>"),
        r"control tokens of lfm2, .*dialect='lfm2'",
    ),
    "gpt_oss": (
        ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|call|>", "<|return|>"),
        r"control tokens of gpt_oss, harmony; .*dialect='gpt_oss'",
    ),
    "functiongemma": (
        ("<eos>", "<start_of_turn>", "<end_of_turn>", "<start_function_call>", "<end_function_call>"),
        r"control tokens of functiongemma; .*dialect='functiongemma'",
    ),
    "no dialect": (("<|im_start|>", "<|im_end|>"), r"control tokens of no known dialect; .*dialect='NAME'"),
}


@pytest.mark.parametrize("name", TEMPLATELESS)
def test_tokens_that_do_not_say_which_dialect_it_is_are_an_error_that_names_those(folder: Path, name: str) -> None:
    tokens, message = TEMPLATELESS[name]
    (folder / "chat_template.jinja").unlink()
    (folder / "tokenizer.json").write_text(json.dumps(make_byte_tokenizer_json(list(tokens))))
    with pytest.raises(ModelError, match=message) as raised:
        load_local_model(folder)
    found = describe_checkpoint(str(folder), {})
    assert str(raised.value) in found.problems
    assert found.notation is None


def rename_one(tensors: dict[str, Any]) -> None:
    tensors["model.other.weight"] = tensors.pop("model.norm.weight")


def reshape_one(tensors: dict[str, Any]) -> None:
    tensors["model.norm.weight"] = np.ones(3, np.float32)


KEYS = {
    "missing": (lambda tensors: tensors.pop("model.norm.weight"), "lack model.norm.weight"),
    "unexpected": (lambda t: t.update(extra=np.ones(2, np.float32)), "have, unknown to the model, extra"),
    "renamed": (rename_one, r"lack model\.norm\.weight; they have, unknown to the model, model\.other\.weight"),
    "mismatched": (reshape_one, r"have in another shape model\.norm\.weight \[3\]"),
}


@pytest.mark.parametrize("name", KEYS)
def test_weights_that_do_not_fit_the_config_are_an_error_of_transformers_engine(folder: Path, name: str) -> None:
    change, message = KEYS[name]
    change_tensors(change)(folder)
    with pytest.raises(EngineError, match=message) as raised:
        load_local_model(folder, engine="transformers")
    assert "\n" not in str(raised.value)
    if name != "unexpected":  # numpy's engine reads what it needs
        with pytest.raises(EngineError, match=r"lack model|has shape"):
            load_local_model(folder, engine="numpy")


OPTIONS = {
    "a dtype that isn't known": ({"dtype": "float3"}, EngineError, "dtype: 'float3' is not one of auto, float32"),
    "a device that isn't there": (
        {"device_map": "cuda:7"},
        EngineError,
        "device_map: this torch finds no device cuda:7; it finds cpu",
    ),
    "a device that doesn't exist": ({"device_map": "gpu"}, EngineError, "'gpu' is no device; expected one of cpu"),
    "several devices": ({"device_map": "auto"}, EngineError, "which needs: pip install accelerate"),
    "a context that is too long": ({"context_length": 9999}, EngineError, "context_length 9999 is not between 1 and"),
    "an option of the other engine": (
        {"engine": "numpy", "dtype": "float32"},
        SettingsError,
        "dtype=… is for engine='transformers'",
    ),
    "an engine that isn't known": ({"engine": "vllm"}, SettingsError, "'vllm' is neither numpy nor transformers"),
    "options of a function": (
        {"engine": lambda _: None, "max_batch": 2},
        SettingsError,
        "max_batch=… is for ferrule's",
    ),
    "a revision of a folder": ({"revision": "main"}, SettingsError, "revision 'main' is for a name on the hub"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_that_can_not_be_honoured_is_named(whole: Path, name: str) -> None:
    options, kind, message = OPTIONS[name]
    with pytest.raises(kind, match=message):
        load_local_model(whole, **options)


MISTYPED = {
    "max_batch": ("abc", "a whole number from 1 up, not 'abc'"),
    "context_length": (True, "a whole number from 1 up, not True"),
    "kv_memory": (-1, "a whole number from 0 up, not -1"),
    "strict_tools": ("maybe", "true or false, not 'maybe'"),
    "trust_remote_code": (1, "true or false, not 1"),
    "dialect": (3, "a text, not 3"),
    "revision": (1.5, "a text, not 1.5"),
}


@pytest.mark.parametrize("name", MISTYPED)
def test_an_option_of_another_type_is_refused_by_what_loads_and_by_what_describes(whole: Path, name: str) -> None:
    value, message = MISTYPED[name]
    options: dict[str, Any] = {name: value}
    with pytest.raises(SettingsError, match=f"^{name} must be {message}$"):
        load_local_model(whole, **options)
    with pytest.raises(SettingsError, match=f"^{name} must be {message}$"):
        describe_checkpoint(str(whole), options)
    with pytest.raises(SettingsError, match="a local model has no option 'dtpe'; those of its engine are max_batch"):
        describe_checkpoint(str(whole), {"dtpe": "float32"})


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_a_package_that_is_not_installed_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModelError, match=rf"needs {package}; install it with: pip install 'ferrule\[local\]'"):
        load_local_model(folder, engine="transformers")
    change_config(use_sliding_window=True)(folder)
    with pytest.raises(ModelError, match=rf"needs {package}, as numpy's engine doesn't run it: use_sliding_window"):
        load_local_model(folder)


def test_weights_in_several_files_are_read(whole: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    shutil.copytree(whole, tmp_path / "sharded", ignore=lambda *_: ["model.safetensors"])
    AutoModelForCausalLM.from_pretrained(whole).save_pretrained(tmp_path / "sharded", max_shard_size="100KB")
    found = describe_checkpoint(str(tmp_path / "sharded"), {})
    assert found.weights_files is not None
    assert found.weights_files > 1
    assert (found.engine, found.problems) == ("transformers", [])
    assert found.weights == describe_checkpoint(str(whole), {}).weights
    load_local_model(tmp_path / "sharded")
