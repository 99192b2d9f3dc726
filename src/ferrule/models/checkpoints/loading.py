"""Loads a checkpoint in Hugging Face's layout as a `LocalModel`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Unpack, get_args

from ferrule.conversation import Conversation, user
from ferrule.dialects import get_dialect, list_dialects
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
    from ferrule.models.checkpoints.options import EngineOptions

EMBEDDED_MODEL = "ferrule.embedded:load_embedded_model"
"""What loads the model in the package: a string, as that stands on a floor above."""
GUIDES = {"nanochat-tools": "ferrule.embedded.guide:load_guide"}
"""What makes the guide of a checkpoint of a dialect, given its folder. An entry point would take 35 ms to look up, and
isn't there in a checkout."""
_HERMES = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>")
"""The control tokens by which hermes is chosen without a template."""


def load_local_model(
    checkpoint: Path | str,
    *,
    name: str | None = None,
    dialect: str | None = None,
    engine: EngineName | EngineFactory | None = None,
    history: History = "as_sampled",
    image_tokens: ImageTokens | None = None,
    strict_tools: bool = False,
    revision: str | None = None,
    **options: Unpack[EngineOptions],
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
        options: those of `EngineOptions`; None is as if left out.

    A checkpoint of the embedded model's dialect, `nanochat-tools`, is steered as that is: see `CallGuide`.

    Raises `ModelError` for a folder without a model, or with an unknown dialect, `ProviderError` where the hub refuses
    or can't be reached, `SettingsError`, `TokenizerError` and `EngineError`.
    """
    if options or dialect is not None or revision is not None or strict_tools is not False:
        from ferrule.models.checkpoints.options import check_options

        check_options({**options, "dialect": dialect, "revision": revision, "strict_tools": strict_tools})
    if history not in get_args(History):
        raise SettingsError(f"history must be {' or '.join(get_args(History))}, not {history!r}")
    folder = Path(checkpoint)
    if revision is not None or not folder.is_dir():
        folder = find_checkpoint(checkpoint, revision, with_code=bool(options.get("trust_remote_code")))
    for needed in ("tokenizer.json",) if callable(engine) else ("config.json", "tokenizer.json"):
        if not (folder / needed).is_file():
            from ferrule.models.checkpoints.files import check_file

            check_file(folder, needed)  # knows what to do about it
    tokenizer = read_tokenizer(folder / "tokenizer.json")
    framing = choose_dialect(tokenizer, folder) if dialect is None else get_dialect(dialect)
    guide, name = _load_guide(framing, folder), name or f"local:{checkpoint}"
    opened = _open_engine(folder, tokenizer, framing, engine, dict(options))
    return LocalModel(opened, tokenizer, framing, name, history, image_tokens, guide, strict_tools)


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
    raise ModelError(
        f"the folder {checkpoint} is missing; give the one with config.json, or a name on the hub, ORG/NAME"
    )


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
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    if callable(engine):
        if given:
            raise SettingsError(f"{next(iter(given))}=… is for ferrule's engines; the function {engine} opens its own")
        return engine(folder)
    if engine is None:
        from ferrule.models.checkpoints.engines import choose_engine

        engine = choose_engine(folder, dialect.name, given).name
    if engine == "transformers":
        from ferrule.models.checkpoints.engines import open_transformers_engine

        return open_transformers_engine(folder, tokenizer, given)
    if engine == "numpy":
        from ferrule.engines.numpy_engine import NumpyEngine

        foreign = next((name for name in given if name not in ("max_batch", "context_length")), None)
        if foreign is not None:
            raise SettingsError(f"{foreign}=… is for engine='transformers'; numpy's computes in float32 on the CPU")
        # A guide's grammars are followed without llguidance: see `GrammarMatcher`.
        return NumpyEngine.load(folder, vocabulary=tokenizer, tries_ids=dialect.name in GUIDES, **given)
    raise SettingsError(f"engine: {engine!r} is neither numpy nor transformers, nor a function that opens a folder")


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
    Otherwise the template's dialect, and without one hermes, if its tokens exist. Raises `ModelError` for others."""
    if frame := find_frame(tokenizer.control):
        return get_dialect(frame)
    from ferrule.tokens.template_loading import has_chat_template, load_dialect

    if has_chat_template(folder):
        return load_dialect(folder)
    if all(token in tokenizer.control for token in _HERMES):
        return get_dialect("hermes")
    raise ModelError(f"{folder}: it has no chat template, and its tokenizer has {_describe_dialects(tokenizer)}")


def _describe_dialects(tokenizer: Tokenizer) -> str:
    """Which dialects a tokenizer may be for, and what to do: several families and versions share their tokens."""
    fitting = [name for name in list_dialects() if _has_tokens(tokenizer, get_dialect(name))]
    of = f"control tokens of {', '.join(fitting)}" if fitting else "the control tokens of no known dialect"
    named = fitting[0] if fitting else "NAME"
    how = choose_advice(f"load_local_model(folder, dialect={named!r})", f"--model-option dialect={named}")
    return f"{of}; add its chat_template.jinja, or name a dialect: {how}"


def _has_tokens(tokenizer: Tokenizer, dialect: Dialect) -> bool:
    """Whether the tokens around a call and the one that ends a message are control tokens."""
    stops = dialect.layout(Conversation((user("Hello"),))).stops
    around = dialect.markers[:2]
    return all(token in tokenizer.control for token in (*around, *stops[:1])) and bool(around)
