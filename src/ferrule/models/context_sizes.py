"""How many tokens a model's context has: by the model itself, its server, or the table `context_sizes.toml`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from ferrule.models.hosted import HostedModel
    from ferrule.models.protocol import Model

_SNAPSHOT = re.compile(r"[-@](?:\d{4}-?\d{2}-?\d{2}|latest|\d{4,6}|v\d+(?::\d+)?)$")
_FIELDS = ("max_model_len", "loaded_context_length", "context_length", "context_window", "max_context_length", "n_ctx")
"""The names that servers give it: vLLM and SGLang, LM Studio, OpenRouter and Together, Groq, Mistral, llama.cpp."""
_PATHS = {"llamacpp": "/props", "lmstudio": "/api/v0/models", "ollama": "/api/ps"}
"""Where servers say it that don't in their list of models."""
_PATIENCE = 5.0
"""How many seconds a server may take: without an answer the size is unknown."""
_known: dict[tuple[str, str], int | None] = {}


async def find_context_size(model: Model) -> int | None:
    """Find the context size of a model in tokens; None if nobody says it. A server is asked once."""
    own = getattr(model, "context_length", None)
    if isinstance(own, int):
        return own
    asked = getattr(model, "model", None)
    if asked is not None and not isinstance(asked, str):  # a wrapper, such as that of text mode
        return await find_context_size(asked)
    listed = look_up_context_size(model.name)
    if listed is not None or not hasattr(model, "fetch_json"):
        return listed
    hosted = cast("HostedModel", model)
    key = (hosted.address, hosted.model)
    if key not in _known:
        _known[key] = await _ask_server(hosted)
    return _known[key]


def look_up_context_size(name: str) -> int | None:
    """Look up a model such as `openai:gpt-5` in the table."""
    provider, _, rest = name.partition(":")
    table = _read_table(provider.removesuffix("-responses"))
    while rest not in table:
        shorter = _SNAPSHOT.sub("", rest)
        if shorter == rest:
            return None
        rest = shorter
    return table[rest]


@lru_cache(maxsize=8)
def _read_table(provider: str) -> Mapping[str, int]:
    """The sizes by the names of a provider's models. Parsing the whole table takes a while, so only its part is."""
    import tomllib
    from importlib.resources import files

    text = files("ferrule.models").joinpath("context_sizes.toml").read_text("utf-8")
    _, _, part = text.partition(f"\n[{provider}]\n")
    sizes = tomllib.loads(part.partition("\n[")[0])
    return {name: int(size) for size, names in sizes.items() for name in names}


async def _ask_server(model: HostedModel) -> int | None:
    """Ask a server that people run themselves, or one with many models, for the size."""
    models = f"{urlsplit(model.address).path.rstrip('/')}/models"
    for path in filter(None, (_PATHS.get(model.provider.name), models)):
        try:
            async with asyncio.timeout(_PATIENCE):
                answer = await model.fetch_json(path)
        except Exception:  # noqa: BLE001 - a server that can't tell is the ordinary case; a request will show an outage
            continue
        found = _read_size(answer, model.model)
        if found is not None:
            return found
    return None


def _read_size(answer: Any, name: str) -> int | None:
    """Read the size of a model from a list of models, or from the properties of a server that has one."""
    if not isinstance(answer, Mapping):
        return None
    listed = answer.get("data", answer.get("models"))
    entries = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else [answer]
    named = [one for one in entries if name in (one.get("id"), one.get("name"), one.get("model"))]
    # A server with one model answers for it under any name.
    chosen = named or (entries if len(entries) == 1 else [])
    return next((size for one in chosen for size in _list_sizes(one)), None)


def _list_sizes(entry: Mapping[str, Any]) -> Iterator[int]:
    nested = (entry.get("default_generation_settings"), entry.get("meta"), entry)
    for one in nested:
        if not isinstance(one, Mapping):
            continue
        for field in _FIELDS:
            size = one.get(field)
            if isinstance(size, int) and not isinstance(size, bool) and size > 0:
                yield size
