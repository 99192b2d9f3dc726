"""Pipelines for other processes: what can't go there is named, and a model given by name is made anew there."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from ferrule.errors import SettingsError
from ferrule.models.naming import model_named

_APART = ("model", "origin")


def reduced(pipeline: Any) -> tuple[Any, ...]:
    """What pickle keeps of a pipeline. Raises `SettingsError`, naming the callback, tool or term that it can't."""
    for what, part in _parts(pipeline):
        try:
            pickle.dumps(part)
        except Exception as error:
            raise SettingsError(
                f"the pipeline can't go to another process with {what}: {error}; define it at the top of a module "
                "that the other process can import"
            ) from error
    kept = {one.name: getattr(pipeline, one.name) for one in fields(pipeline) if one.name not in _APART}
    return _rebuilt, (type(pipeline), pipeline.origin, None if pipeline.origin else pipeline.model, kept)


def _rebuilt(kind: type, origin: tuple[str, dict[str, Any]] | None, model: Any, kept: dict[str, Any]) -> Any:
    if origin is None:
        return kind(model, **kept)
    name, options = origin
    return kind(model_named(name, **options), origin=origin, **kept)


def _parts(pipeline: Any) -> Iterator[tuple[str, Any]]:
    if not pipeline.origin:
        yield f"the model {pipeline.model.name!r}", pipeline.model
    for tool in pipeline.registry:
        yield f"the tool {tool.name!r} ({tool.whence})", tool
    yield "its tools", pipeline.registry
    callbacks = [callback for step in pipeline.steps if (callback := getattr(step, "callback", None)) is not None]
    for callback in (*callbacks, *pipeline.watchers):
        yield f"the callback {getattr(callback, '__qualname__', callback)!r}", callback
    for term in fields(pipeline.terms):
        yield f"{term.name}=", getattr(pipeline.terms, term.name)
    yield "what parse_as was given", pipeline.output
