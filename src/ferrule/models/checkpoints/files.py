"""What a checkpoint's folder holds: its config, its weights and what can't be used, found without loading any weights.

Nothing in the folder is trusted: a damaged or hostile file is a `ModelError` that says which, and what to do.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferrule.engines.safetensors import TensorPlace, read_tensor_places
from ferrule.errors import EngineError, ModelError

SINGLE_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
_OTHER_TOKENIZERS = {
    "tokenizer.model": "a SentencePiece file",
    "tekken.json": "Mistral's own format",
    "tokenizer.pkl": "a pickle",
    "tiktoken.model": "tiktoken's format",
    "vocab.json": "an older format",
    "vocab.txt": "an older format",
}

_COUNTS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "max_position_embeddings",
)
"""What a config counts, if it names it."""
_EMBEDDING = "embed_tokens.weight"
"""How the name of the tensor ends that has a row for each id, in all families that are run."""


@dataclass(frozen=True, slots=True)
class CheckpointConfig:
    """A `config.json`, as far as it decides how a checkpoint is run."""

    raw: Mapping[str, Any]

    @property
    def architecture(self) -> str:
        """The class that transformers has for it, such as `Qwen3ForCausalLM`; empty if it names none."""
        match self.raw.get("architectures"):
            case [str(name), *_]:
                return name
        return ""

    @property
    def family(self) -> str:
        """Its `model_type`, such as `qwen3`; empty without one."""
        found = self.raw.get("model_type")
        return found if isinstance(found, str) else ""

    @property
    def context_length(self) -> int | None:
        """The most ids of a conversation, if it says so."""
        return next((found for found in self.list_values("max_position_embeddings") if isinstance(found, int)), None)

    def list_values(self, name: str) -> list[Any]:
        """The values that it has of that name, but for null: its own, and that of its part for text."""
        parts = (self.raw, self.raw.get("text_config"))
        return [part[name] for part in parts if isinstance(part, Mapping) and part.get(name) is not None]

    @property
    def dtype(self) -> str | None:
        """The type that its weights are computed in, such as `bfloat16`, if it says so."""
        for name in ("dtype", "torch_dtype"):
            if isinstance(found := self.raw.get(name), str):
                return found
        return None

    @property
    def own_code(self) -> str | None:
        """The Python file in the folder that its `auto_map` names, which would be run; None without one."""
        found = self.raw.get("auto_map")
        names = [str(name) for name in found.values()] if isinstance(found, dict) else []
        named = next((name for name in names if "Model" in name or "ForC" in name), names[0] if names else None)
        return None if named is None else f"{named.rpartition('--')[2].partition('.')[0]}.py"


@dataclass(frozen=True, slots=True)
class CheckpointWeights:
    """The safetensors files of a checkpoint, and what their headers say."""

    files: tuple[Path, ...]
    tensors: Mapping[str, TensorPlace]

    @property
    def size(self) -> int:
        """The bytes of the tensors."""
        return sum(place.end - place.start for place in self.tensors.values())

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The types of the tensors in safetensors' names, the one with the most bytes first."""
        bytes_by_type: Counter[str] = Counter()
        for place in self.tensors.values():
            bytes_by_type[place.dtype] += place.end - place.start
        return tuple(name for name, _ in bytes_by_type.most_common())


def read_checkpoint_config(folder: Path) -> CheckpointConfig:
    """The `config.json` of a folder. Raises `ModelError`."""
    return CheckpointConfig(_read_json(folder / "config.json"))


def find_weights(folder: Path) -> CheckpointWeights:
    """The weights of a folder, in one file or in several that an index names.

    Raises `ModelError` for none, for pickled ones, and for a damaged file or index.
    """
    single, index = folder / SINGLE_FILE, folder / INDEX
    if single.is_file():
        return CheckpointWeights((single,), _read_tensors(single))
    if not index.is_file():
        raise ModelError(_describe_missing_weights(folder))
    named = _read_index(index)
    files = tuple(sorted({folder / name for name in named.values()}))
    by_file = {path: _read_tensors(path) for path in files}
    for tensor, name in named.items():
        if tensor not in by_file[folder / name]:
            raise ModelError(f"{index} says that {tensor} is in {name}, but it isn't; download the checkpoint again")
    return CheckpointWeights(files, {tensor: place for found in by_file.values() for tensor, place in found.items()})


def check_shapes(folder: Path, config: CheckpointConfig, weights: CheckpointWeights) -> None:
    """Raise `ModelError` for a count of a config that is none, and for one of ids that its weights don't have."""
    path = folder / "config.json"
    for name in _COUNTS:
        for count in config.list_values(name):
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise ModelError(f"{path}: {name} must be a whole number from 1 up, not {count!r}")
    sizes = config.list_values("vocab_size")
    for name, place in weights.tensors.items():
        if name.endswith(_EMBEDDING) and sizes and place.shape[:1] and place.shape[0] not in sizes:
            raise ModelError(f"{path}: vocab_size is {sizes[-1]}, but {name} has {place.shape[0]} rows")


def check_file(folder: Path, name: str) -> Path:
    """The path of a file. Raises `ModelError` if the folder lacks it, with what to do."""
    path = folder / name
    if not path.is_file():
        raise ModelError(_describe_missing_file(folder, name))
    return path


def _describe_missing_file(folder: Path, name: str) -> str:
    if name == SINGLE_FILE:
        return _describe_missing_weights(folder)
    inside = folder / "model"
    if (inside / name).is_file():
        return f"{folder} contains no model: {name} is missing; there is one in {inside}"
    if name == "tokenizer.json":
        for other, what in _OTHER_TOKENIZERS.items():
            if (folder / other).is_file():
                return (
                    f"{folder}: tokenizer.json is missing; {other} is {what}, from which transformers can make it: "
                    "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)"
                )
    return f"{folder} contains no model: {name} is missing"


def _read_index(index: Path) -> dict[str, str]:
    """The file of each tensor. Raises `ModelError` for one that isn't in the index's folder."""
    named = _read_json(index).get("weight_map")
    if not isinstance(named, dict) or not named:
        raise ModelError(f"{index} has no weight_map, which says where each tensor is; download the checkpoint again")
    for name in named.values():
        # A path, also one upwards, would have files read that aren't the checkpoint's.
        if not isinstance(name, str) or Path(name).name != name or not name.endswith(".safetensors"):
            raise ModelError(f"{index} names {name!r}, which is not a safetensors file of its folder")
        if not (index.parent / name).is_file():
            raise ModelError(f"{index.parent}: {name} is missing, which {index.name} names; download the rest")
    return named


def _read_tensors(path: Path) -> dict[str, TensorPlace]:
    try:
        return read_tensor_places(path)
    except EngineError as error:
        raise ModelError(str(error)) from error


def _describe_missing_weights(folder: Path) -> str:
    pickle = next((path.name for pattern in _PICKLES for path in sorted(folder.glob(pattern))), None)
    if (folder / "adapter_model.safetensors").is_file():
        return f"{folder} holds an adapter, not a model; merge it into its model first (peft: merge_and_unload)"
    if pickle is not None:
        return (
            f"{folder}: the weights are a pickle, {pickle}, which can run any code when it is loaded, so it isn't; "
            "convert it to safetensors (https://huggingface.co/docs/safetensors/convert-weights)"
        )
    gguf = next((path.name for path in sorted(folder.glob("*.gguf"))), None)
    if gguf is not None:
        return f"{folder} holds {gguf}, which llama.cpp runs: start its server, and name the model llamacpp:NAME"
    return f"{folder} contains no model: {SINGLE_FILE} is missing"


def _read_json(path: Path) -> dict[str, Any]:
    """A file's JSON object. Raises `ModelError`."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(f"{path.parent} contains no model: {path.name} is missing") from error
    except OSError as error:
        raise ModelError(f"can't read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not JSON: {error}; download it again") from error
    if not isinstance(raw, dict):
        raise ModelError(f"{path} is not a JSON object; download it again")
    return raw
