"""The model in the package, and how a checkpoint's folder becomes a `LocalModel`."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from ferrule.dialects import get_dialect
from ferrule.dialects.nanochat_markers import PYTHON_START
from ferrule.dialects.protocol import Dialect
from ferrule.errors import FerruleError, ModelError
from ferrule.models.local import LocalModel
from ferrule.tokens.tokenizer import ByteTokenizer, Tokenizer


def embedded_folder() -> Path:
    """Where the embedded model's files lie."""
    return Path(str(files("ferrule.embedded")))


def embedded_model() -> LocalModel:
    """The model in the package: it knows one tool, the calculator. Nothing is downloaded."""
    return local_model(embedded_folder(), name="embedded")


def local_model(folder: Path, *, name: str | None = None, dialect: str | None = None) -> LocalModel:
    """A checkpoint in Hugging Face's layout, run by numpy.

    Without a `dialect` (a name that `get_dialect` knows) it is framed by its own chat template, in the notation of the
    family that the template is of. Raises `ModelError` for a folder that holds none, or whose dialect is not known.
    """
    from ferrule.engines import NumpyEngine

    for needed in ("config.json", "model.safetensors", "tokenizer.json"):
        if not (folder / needed).is_file():
            raise ModelError(f"{folder} holds no model: {needed} is missing")
    tokenizer = read_tokenizer(folder / "tokenizer.json")
    framed = _dialect(tokenizer, folder) if dialect is None else get_dialect(dialect)
    return LocalModel(NumpyEngine.load(folder), tokenizer, framed, name or f"local:{folder}")


def read_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of a `tokenizer.json`: ours where it is of bytes without merges, else that of `tokenizers`."""
    try:
        return ByteTokenizer(path)
    except FerruleError:
        from ferrule.tokens.hf import HuggingFaceTokenizer

        return HuggingFaceTokenizer(path)


def _dialect(tokenizer: Tokenizer, folder: Path) -> Dialect:
    """Nanochat where its tokens are: no template could say how results stand within a turn. Else the template's own."""
    from ferrule.tokens.for_tokenizer import dialect_for_tokenizer, has_chat_template

    if PYTHON_START in tokenizer.control:
        return get_dialect("nanochat")
    if has_chat_template(folder):
        return dialect_for_tokenizer(folder)
    if "<|im_start|>" in tokenizer.control:
        return get_dialect("hermes")
    raise ModelError(
        f"{folder}: it has no chat template, and its tokenizer the control tokens of no dialect that ferrule knows; "
        "put its chat_template.jinja there, or name a dialect: local_model(folder, dialect=…)"
    )
