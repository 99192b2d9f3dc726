"""Loads a checkpoint in Hugging Face's layout as a `LocalModel`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, get_args

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
    from ferrule.engines import Engine, EngineFactory
    from ferrule.models.checkpoints.engines import EngineName

EMBEDDED_MODEL = "ferrule.embedded:load_embedded_model"
"""What loads the model in the package: a string, as that stands on a floor above."""
GUIDES = {"nanochat-tools": "ferrule.embedded.guide:load_guide"}
"""What makes the guide of a checkpoint of a dialect, given its folder. An entry point would take 35 ms to look up, and
isn't there in a checkout."""

_NEEDED = {
    "function": ("tokenizer.json",),
    "numpy": ("config.json", "model.safetensors", "tokenizer.json"),
    "transformers": ("config.json", "tokenizer.json"),
    None: ("config.json", "tokenizer.json"),
}
"""The files that a folder must have, by the engine that is named."""


def load_local_model(  # noqa: PLR0913 - each option by its name, as model("local:…", …) takes them
    checkpoint: Path | str,
    *,
    name: str | None = None,
    dialect: str | None = None,
    engine: EngineName | EngineFactory | None = None,
    history: History = "as_sampled",
    image_tokens: ImageTokens | None = None,
    strict_tools: bool = False,
    revision: str | None = None,
    dtype: str | None = None,
    device_map: Any = None,
    trust_remote_code: bool | None = None,
    max_batch: int | None = None,
    context_length: int | None = None,
    kv_memory: int | None = None,
) -> LocalModel:
    """A checkpoint in Hugging Face's layout.

    Args:
        checkpoint: the folder of `config.json`, the weights and `tokenizer.json`, or a name on Hugging Face's hub,
            `ORG/NAME`, which is downloaded unless it is in the hub's cache.
        name: what the model is called in messages; `local:<checkpoint>` if left out.
        dialect: a name that `get_dialect` accepts. Without it the model is framed by its own chat template, in the
            notation of the detected family.
        engine: `numpy`, `transformers`, or a function that opens the folder with another. Without it, numpy runs what
            it can if that is small, and transformers the rest; see `choose_engine`. Any engine that uses the ids
            of `tokenizer.json` will do, whatever else it needs from the folder.
        history: how earlier messages are written if the dialect rewrites history; see `prepare_history`.
        image_tokens: the ids that represent an image; see `LocalModel`.
        strict_tools: whether every call must fit the schema of its tool; see `LocalModel`.
        revision: a branch, tag or commit, for a name on the hub.
        dtype: what transformers computes in: `float32`, `bfloat16`, `float16`, or `auto`, as the checkpoint says.
        device_map: where transformers puts the weights: `cpu`, `cuda`, `cuda:1`, `mps`, or a map of several devices.
            Without it, `cuda` if there is one, or else `cpu`.
        trust_remote_code: whether Python files of the checkpoint may be run.
        max_batch: the most conversations that are computed at once.
        context_length: the most ids of a conversation, if fewer than the checkpoint allows.
        kv_memory: the most bytes of keys and values that transformers' engine keeps.

    A checkpoint of the embedded model's dialect, `nanochat-tools`, is steered as that is: see `CallGuide`.

    Raises `ModelError` for a folder without a model, or with an unknown dialect, `ProviderError` where the hub refuses
    or can't be reached, `SettingsError`, `TokenizerError` and `EngineError`.
    """
    if history not in get_args(History):
        raise SettingsError(f"history must be {' or '.join(get_args(History))}, not {history!r}")
    if not (engine is None or callable(engine)) and engine not in _NEEDED:
        raise SettingsError(f"engine: {engine!r} is neither numpy nor transformers, nor a function that opens a folder")
    given = {"dtype": dtype, "device_map": device_map, "trust_remote_code": trust_remote_code or None,
             "max_batch": max_batch, "context_length": context_length, "kv_memory": kv_memory}  # fmt: skip
    options = {option: value for option, value in given.items() if value is not None}
    folder = Path(checkpoint)
    if revision is not None or not folder.is_dir():
        folder = find_checkpoint(checkpoint, revision, with_code=bool(trust_remote_code))
    for needed in _NEEDED["function" if callable(engine) else engine]:
        if not (folder / needed).is_file():
            from ferrule.models.checkpoints.files import check_file

            check_file(folder, needed)  # knows what to do about it
    tokenizer = read_tokenizer(folder / "tokenizer.json")
    framing = choose_dialect(tokenizer, folder) if dialect is None else get_dialect(dialect)
    guide = _load_guide(framing, folder)
    return LocalModel(
        _open_engine(folder, tokenizer, framing, engine, options),
        tokenizer,
        framing,
        name or f"local:{checkpoint}",
        history,
        image_tokens,
        guide,
        strict_tools,
    )


def find_checkpoint(
    checkpoint: Path | str, revision: str | None = None, *, with_weights: bool = True, with_code: bool = False
) -> Path:
    """The folder of a checkpoint: itself, or that of a name on the hub, in the hub's cache.

    What of such a name is fetched are its weights, `with_code` its Python files, and the rest. Raises `ModelError` if
    there is none, and what `fetch_checkpoint` raises.
    """
    folder = Path(checkpoint).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise SettingsError(f"revision {revision!r} is for a name on the hub, and {checkpoint} is a folder")
        return folder
    from ferrule.models.checkpoints.hub import fetch_checkpoint, is_hub_name

    if folder.exists():
        raise ModelError(f"{checkpoint} is a file; name the folder of the checkpoint")
    if isinstance(checkpoint, str) and is_hub_name(checkpoint):
        return fetch_checkpoint(checkpoint, revision, with_weights=with_weights, with_code=with_code)
    raise ModelError(f"there is no folder {checkpoint}; give that of a checkpoint, or a name on the hub, ORG/NAME")


def _load_guide(dialect: Dialect, folder: Path) -> CallGuide | None:
    if dialect.name not in GUIDES:
        return None
    guide: CallGuide = resolve_name(GUIDES[dialect.name])(folder)
    return guide


def _open_engine(
    folder: Path,
    tokenizer: Tokenizer,
    dialect: Dialect,
    engine: EngineName | EngineFactory | None,
    options: dict[str, Any],
) -> Engine:
    """Open the weights. Raises `ModelError`, `EngineError`, and `SettingsError` for an option of another engine."""
    if callable(engine):
        if options:
            raise SettingsError(
                f"{next(iter(options))}=… is for ferrule's engines; the function {engine} opens its own"
            )
        return engine(folder)
    if engine is None:
        from ferrule.models.checkpoints.engines import choose_engine

        engine = choose_engine(folder, dialect.name, options).name
    if engine == "transformers":
        from ferrule.models.checkpoints.engines import open_transformers_engine

        return open_transformers_engine(folder, tokenizer, options)
    from ferrule.engines.numpy_engine import NumpyEngine

    foreign = next((name for name in options if name not in ("max_batch", "context_length")), None)
    if foreign is not None:
        raise SettingsError(f"{foreign}=… is for engine='transformers'; numpy's computes in float32 on the CPU")
    return NumpyEngine.load(folder, vocabulary=tokenizer, **options)


def read_tokenizer(path: Path | str) -> Tokenizer:
    """The tokenizer of a `tokenizer.json`: ferrule's own for bytes and for words, otherwise that of `tokenizers`."""
    file = read_tokenizer_file(path)
    for own in (ByteTokenizer, WordTokenizer):
        with suppress(TokenizerError):
            return own(file)
    from ferrule.tokens.hugging_face import HuggingFaceTokenizer

    return HuggingFaceTokenizer(file)


def choose_dialect(tokenizer: Tokenizer, folder: Path) -> Dialect:
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
