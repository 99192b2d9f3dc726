"""Annotations made fit for pydantic without loss: what it refuses or overlooks is rewritten.

- `typing.TypedDict` below Python 3.12 becomes the same type of `typing_extensions`, at any depth;
- `Annotated[T, "text"]` becomes `Annotated[T, Field(description="text")]`, inside them as well;
- a standard dataclass with such a field is validated through a copy and comes out as itself.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typing_extensions
from pydantic import AfterValidator, ConfigDict, Field

CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False)
"""How arguments are read; pydantic hands it down to dataclasses and TypedDicts, not to models with their own."""

_REQUIRED = (typing.Required, typing_extensions.Required)
_NOT_REQUIRED = (typing.NotRequired, typing_extensions.NotRequired)


class Plainer:
    """Rewrites annotations; one serves all parameters of a function, so that a type met twice stays one type."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = dict(names)
        self._done: dict[Any, Any] = {}

    def convert(self, hint: Any) -> Any:
        """The annotation as pydantic should see it; the same object where nothing had to change."""
        if typing_extensions.is_typeddict(hint):
            return self._typed_dict(hint)
        if isinstance(hint, type) and dataclasses.is_dataclass(hint) and "__pydantic_validator__" not in vars(hint):
            return self._dataclass(hint)
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            inner, *extras = arguments
            fields = [Field(description=extra) if isinstance(extra, str) else extra for extra in extras]
            return Annotated[(self.convert(inner), *fields)]
        if not arguments or origin is typing.Literal:
            return hint
        converted = tuple(self.convert(argument) for argument in arguments)
        if all(new is old for new, old in zip(converted, arguments, strict=True)):
            return hint
        if origin in (Union, types.UnionType):
            return Union[converted]  # noqa: UP007 - the members are only known now
        if isinstance(hint, types.GenericAlias):
            return types.GenericAlias(origin, converted)
        return hint.copy_with(converted) if hasattr(hint, "copy_with") else hint

    def _typed_dict(self, original: Any) -> Any:
        if original in self._done:
            return self._done[original]
        copy = self._done[original] = typing_extensions.TypedDict(original.__name__, {})  # type: ignore[operator]
        hints = get_type_hints(original, localns=self._names, include_extras=True)
        required = {name for name in hints if _is_required(name, hints[name], original)}
        # Filled in afterwards, since a TypedDict may hold itself.
        copy.__annotations__ = {name: self.convert(_unqualified(hint)) for name, hint in hints.items()}
        copy.__required_keys__ = frozenset(required)
        copy.__optional_keys__ = frozenset(hints.keys() - required)
        copy.__module__, copy.__doc__ = original.__module__, original.__doc__
        copy.__pydantic_config__ = getattr(original, "__pydantic_config__", CONFIG)
        return copy

    def _dataclass(self, original: type[Any]) -> Any:
        if original in self._done:
            return self._done[original]
        self._done[original] = original
        hints = get_type_hints(original, localns=self._names, include_extras=True)
        fields = [one for one in dataclasses.fields(original) if one.init]
        converted = {one.name: self.convert(hints[one.name]) for one in fields}
        is_plain = all(converted[one.name] is hints[one.name] for one in fields) and _is_resolvable(original)
        # A copy would lack what only __init__ takes.
        takes_more = any(isinstance(hint, dataclasses.InitVar) for hint in hints.values())
        return original if is_plain or takes_more else self._copied(original, fields, converted)

    def _copied(self, original: type[Any], fields: list[dataclasses.Field[Any]], hints: Mapping[str, Any]) -> Any:
        copied = [(one.name, hints[one.name], _same_default(one)) for one in fields]
        copy = dataclasses.make_dataclass(original.__name__, copied, kw_only=True)
        copy.__module__, copy.__doc__ = original.__module__, original.__doc__

        def restored(value: Any) -> Any:
            return original(**{one.name: getattr(value, one.name) for one in fields})

        self._done[original] = Annotated[copy, AfterValidator(restored)]
        return self._done[original]


def _is_resolvable(original: type[Any]) -> bool:
    """Whether its module alone explains its annotations: pydantic doesn't see the function around a class."""
    try:
        get_type_hints(original)
    except NameError:
        return False
    return True


def _same_default(one: dataclasses.Field[Any]) -> Any:
    return dataclasses.field(default=one.default, default_factory=one.default_factory, metadata=one.metadata)


def _unqualified(hint: Any) -> Any:
    while get_origin(hint) in (*_REQUIRED, *_NOT_REQUIRED, typing_extensions.ReadOnly):
        hint = get_args(hint)[0]
    return hint


def _is_required(name: str, hint: Any, original: Any) -> bool:
    """What the field itself says; otherwise what its class says.

    Where annotations are strings, `__required_keys__` doesn't see `NotRequired` in them, but the hint does.
    """
    while (origin := get_origin(hint)) is not None:
        if origin in _REQUIRED or origin in _NOT_REQUIRED:
            return origin in _REQUIRED
        if origin not in (Annotated, typing_extensions.ReadOnly):
            break
        hint = get_args(hint)[0]
    return name in original.__required_keys__
