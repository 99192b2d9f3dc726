"""A function's parameters: checked at once, with annotations resolved where Python can see the names.

It is independent of JSON. Parameters that can't be offered to a model (`*args`, or without a type) are refused here.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

from ferrule.errors import ToolDefinitionError
from ferrule.tools.scope import CallScope

MISSING = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as written; `annotation` may still be a string. `default` is MISSING if there is none."""

    name: str
    annotation: Any
    default: Any = MISSING


def read_parameters(function: Callable[..., Any], subject: str, skip_first: bool = False) -> tuple[Parameter, ...]:
    """The parameters that a model can provide, without the first one of a method.

    Raises `ToolDefinitionError`, naming the parameter and the solution.
    """
    parameters = list(read_signature(function, subject).parameters.values())
    if skip_first:
        parameters = parameters[1:]
    for parameter in parameters:
        _check_parameter(parameter, subject)
    return tuple(Parameter(one.name, one.annotation, one.default) for one in parameters)


def read_signature(function: Callable[..., Any], subject: str) -> inspect.Signature:
    """The signature, with unresolved names. Raises `ToolDefinitionError` if there is none."""
    try:
        if sys.version_info >= (3, 14):
            from annotationlib import Format

            return inspect.signature(function, annotation_format=Format.FORWARDREF)
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(
            f"{subject} has no readable signature ({error}); wrap it in a function with annotated parameters"
        ) from None


def _check_parameter(parameter: inspect.Parameter, subject: str) -> None:
    name, kind = parameter.name, parameter.kind
    if kind is inspect.Parameter.VAR_POSITIONAL:
        fault = f"*{name} can't be expressed in a schema; take a list: {name}: list[str]"
    elif kind is inspect.Parameter.VAR_KEYWORD:
        fault = (
            f"**{name} can't be expressed in a schema; name the parameters, or take a dict: {name}: dict[str, str] "
            "(a decorator above needs functools.wraps)"
        )
    elif kind is inspect.Parameter.POSITIONAL_ONLY:
        fault = f"the parameter {name!r} is positional-only, but a model gives arguments by name; remove the '/'"
    elif parameter.annotation is MISSING:
        fault = f"the parameter {name!r} has no type; annotate it, for example {name}: str"
    else:
        return
    raise ToolDefinitionError(f"{subject}: {fault}")


def find_enclosing_names(function: Callable[..., Any]) -> dict[str, Any]:
    """The names that a nested function can see: its closure, and the locals of the frames around it.

    Annotations that are strings may name a class that is defined nowhere else.
    """
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None or "<locals>" not in function.__qualname__:
        return {}
    names: dict[str, Any] = {}
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_filename == code.co_filename and frame.f_locals is not frame.f_globals:
            names = {**frame.f_locals, **names}
        frame = frame.f_back
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # an empty cell
            continue
    return names


def select_type_names(names: Mapping[str, Any]) -> dict[str, Any]:
    """Select the names that annotations consist of: a tool must not keep all locals of its creator alive."""
    return {
        name: value
        for name, value in names.items()
        if isinstance(value, type | ModuleType) or type(value).__module__ in ("typing", "typing_extensions", "types")
    }


def resolve_annotations(
    function: Callable[..., Any], parameters: tuple[Parameter, ...], names: Mapping[str, Any], subject: str
) -> dict[str, Any]:
    """Each parameter's annotation as an object, `Annotated` kept.

    Raises `ToolDefinitionError` for a name that can't be resolved from the function.
    """
    while isinstance(function, partial):
        function = function.func
    call = function if hasattr(function, "__globals__") or inspect.ismethod(function) else type(function).__call__
    reachable = getattr(inspect.unwrap(call), "__globals__", {})
    # A CallScope imported only for type checkers must not cause an error.
    visible = {"CallScope": CallScope, **reachable, **names}

    def holder() -> None:
        """Carries one annotation, so that an error can be attributed to it."""

    hints: dict[str, Any] = {}
    for parameter in parameters:
        holder.__annotations__ = {parameter.name: parameter.annotation}
        try:
            hints.update(typing.get_type_hints(holder, globalns=visible, include_extras=True))
        except Exception as error:
            raise ToolDefinitionError(
                f"{subject}: the type of {parameter.name!r}, {_format_annotation(parameter.annotation)}, can't be "
                f"resolved ({error}); define or import it at the top of the module, before its first use"
            ) from error
    return hints


def _format_annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
