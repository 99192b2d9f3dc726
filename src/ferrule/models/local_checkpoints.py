"""Loads a checkpoint in Hugging Face's layout as a `LocalModel`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, get_args

from ferrule.dialects import get_dialect
from ferrule.dialects.families.nanochat_tools import find_frame
from ferrule.dialects.protocol import Dialect
from ferrule.errors import ModelError, SettingsError, TokenizerError, choose_advice
from ferrule.models.local import LocalModel
from ferrule.models.protocol import CallGuide
from ferrule.tokens.render import History, ImageTokens
from ferrule.tokens.tokenizer import ByteTokenizer, Tokenizer, read_tokenizer_file
from ferrule.tokens.word_tokenizer import WordTokenizer

if TYPE_CHECKING:
    from ferrule.engines import EngineFactory
    from ferrule.engines.numpy_engine import NumpyEngine

EMBEDDED_MODEL = "ferrule.embedded:load_embedded_model"
"""What loads the model in the package: a string, as that stands on a floor above."""
GUIDES = {"nanochat-tools": "ferrule.embedded.guide:load_guide"}
"""What makes the guide of a checkpoint of a dialect, given its folder. An entry point would take 35 ms to look up, and
isn't there in a checkout."""


def load_local_model(
    folder: Path | str,
    *,
    name: str | None = None,
    dialect: str | None = None,
    engine: EngineFactory | None = None,
    history: History = "as_sampled",
    image_tokens: ImageTokens | None = None,
) -> LocalModel:
    """A checkpoint in Hugging Face's layout.

    Args:
        folder: where `config.json`, `model.safetensors` and `tokenizer.json` are.
        name: what the model is called in messages; `local:<folder>` if left out.
        dialect: a name that `get_dialect` accepts. Without it the model is framed by its own chat template, in the
            notation of the detected family.
        engine: opens the checkpoint, given the folder; `NumpyEngine.load` if left out. Any engine that uses the ids
            of `tokenizer.json` will do, whatever else it needs from the folder.
        history: how earlier messages are written if the dialect rewrites history; see `prepare_history`.
        image_tokens: the ids that represent an image; see `LocalModel`.

    A checkpoint of the embedded model's dialect, `nanochat-tools`, is steered as that is: see `CallGuide`.

    Raises `ModelError` for a folder without a model, or with an unknown dialect, and `EngineError`.
    """
    folder = Path(folder)
    for needed in ("config.json", "model.safetensors", "tokenizer.json") if engine is None else ("tokenizer.json",):
        if not (folder / needed).is_file():
            inside = folder / "model"
            hint = f"; there is one in {inside}" if (inside / needed).is_file() else ""
            raise ModelError(f"{folder} contains no model: {needed} is missing{hint}")
    if history not in get_args(History):
        raise SettingsError(f"history must be {' or '.join(get_args(History))}, not {history!r}")
    tokenizer = read_tokenizer(folder / "tokenizer.json")
    framing = _choose_dialect(tokenizer, folder) if dialect is None else get_dialect(dialect)
    guide = _load_guide(framing, folder)
    return LocalModel(
        _open_engine(folder, tokenizer, guide is not None) if engine is None else engine(folder),
        tokenizer,
        framing,
        name or f"local:{folder}",
        history,
        image_tokens,
        guide,
    )


def _load_guide(dialect: Dialect, folder: Path) -> CallGuide | None:
    if dialect.name not in GUIDES:
        return None
    guide: CallGuide = resolve_name(GUIDES[dialect.name])(folder)
    return guide


def _open_engine(folder: Path, tokenizer: Tokenizer, has_guide: bool) -> NumpyEngine:
    from ferrule.engines.numpy_engine import NumpyEngine

    # A guide's confidences were measured with ids that are tried, and it needs nothing but the package.
    return NumpyEngine.load(folder, vocabulary=tokenizer, tries_ids=has_guide)


def read_tokenizer(path: Path | str) -> Tokenizer:
    """The tokenizer of a `tokenizer.json`: ferrule's own for bytes and for words, otherwise that of `tokenizers`."""
    file = read_tokenizer_file(path)
    for own in (ByteTokenizer, WordTokenizer):
        with suppress(TokenizerError):
            return own(file)
    from ferrule.tokens.hugging_face import HuggingFaceTokenizer

    return HuggingFaceTokenizer(file)


def _choose_dialect(tokenizer: Tokenizer, folder: Path) -> Dialect:
    """Nanochat's, with or without an offer, if its tokens exist: no template can express results inside a turn.
    Otherwise the template's dialect."""
    if frame := find_frame(tokenizer.control):
        return get_dialect(frame)
    from ferrule.tokens.template_loading import has_chat_template, load_dialect

    if has_chat_template(folder):
        return load_dialect(folder)
    if "<|im_start|>" in tokenizer.control:
        return get_dialect("hermes")
    add = "add its chat_template.jinja"
    other = choose_advice(f"{add}, or name a dialect: load_local_model(folder, dialect=…)", add)
    raise ModelError(
        f"{folder}: it has no chat template, and its tokenizer has the control tokens of no known dialect; {other}"
    )
