"""Pipelines in other processes: what of one can't be pickled, by name, and how it is rebuilt there."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ferrule.agent.options import UseTools
from ferrule.errors import SettingsError
from ferrule.models.naming import get_model

if TYPE_CHECKING:
    from ferrule.agent.pipeline import Pipeline


def check_picklable(pipeline: Pipeline[Any]) -> None:
    """Raise `SettingsError`, naming the first part of a pipeline that can't be pickled."""
    for what, part in _list_parts(pipeline):
        try:
            pickle.dumps(part)
        except Exception as error:
            raise SettingsError(
                f"the pipeline can't be sent to another process, because of {what}: {error}; define it at the top of a "
                "module that the other process can import"
            ) from error


def _list_parts(pipeline: Pipeline[Any]) -> Iterator[tuple[str, Any]]:
    if not pipeline.origin:
        yield f"the model {pipeline.model.name!r}", pipeline.model
    else:
        yield f"the options of the model {pipeline.origin[0]!r}", pipeline.origin[1]
    for tool in pipeline.registry:
        yield f"the tool {tool.name!r} ({tool.location})", tool
    yield "its tools", pipeline.registry
    callbacks = [step.callback for step in pipeline.steps if not isinstance(step, UseTools)]
    for callback in (*callbacks, *pipeline.watchers):
        yield f"the callback {getattr(callback, '__qualname__', callback)!r}", callback
    for hooks in pipeline.hooks:
        yield f"the hooks {getattr(hooks, '__qualname__', hooks)!r}", hooks
    for option in fields(pipeline.options):
        yield f"{option.name}=", getattr(pipeline.options, option.name)
    yield "the type that parse_as was given", pipeline.output


def rebuild(kind: type, origin: tuple[str, dict[str, Any]] | None, model: Any, kept: dict[str, Any]) -> Any:
    """Rebuild an unpickled pipeline; a model that was given by name is created again in this process."""
    if origin is None:
        return kind(model, **kept)
    name, options = origin
    return kind(get_model(name, **options), origin=origin, **kept)
