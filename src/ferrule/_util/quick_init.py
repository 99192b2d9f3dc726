"""Frozen dataclasses that are created in half the time.

The `__init__` of a frozen dataclass calls `object.__setattr__` for each field, which has to look up the field. Values
of which a reader creates one for each piece of text, and a run several for each message, use their slots' setters
instead, which are known once the class exists.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

Made = TypeVar("Made")


def quick_init(made: type[Made]) -> type[Made]:
    """Give a `@dataclass(frozen=True, slots=True)` whose fields are all arguments an `__init__` that sets its slots."""
    return _replace_init(made, {})


def checked_init(**checks: tuple[str, Callable[[Any], Any]]) -> Callable[[type[Made]], type[Made]]:
    """`quick_init` for values that programs create: `field=(condition, convert)` for each field that is checked.

    `condition` is an expression of the field's name that is true for a usual value and takes next to no time; any other
    value is replaced by what `convert` returns for it, or refused by what it raises.
    """
    return lambda made: _replace_init(made, checks)


def _replace_init(made: type[Made], checks: Mapping[str, tuple[str, Callable[[Any], Any]]]) -> type[Made]:
    kind: Any = made  # a dataclass, which a type variable can't be bound to
    # A condition may name what its module has defined so far.
    names: dict[str, Any] = {**(vars(sys.modules[made.__module__]) if checks else {}), "_left_out": MISSING}
    parameters, lines = ["self"], []
    for one in fields(kind):
        name = one.name
        names[f"_set_{name}"] = getattr(made, name).__set__
        value, parameter = name, name
        if one.default is not MISSING:
            names[f"_default_{name}"] = one.default
            parameter = f"{name}=_default_{name}"
        elif one.default_factory is not MISSING:
            names[f"_make_{name}"] = one.default_factory
            parameter = f"{name}=_left_out"
            value = f"_make_{name}() if {name} is _left_out else {name}"
        if name in checks:
            condition, names[f"_convert_{name}"] = checks[name]
            usual = condition if value == name else f"{name} is _left_out or {condition}"
            lines.append(f"    if not ({usual}): {name} = _convert_{name}({name})")
        parameters.append(parameter)
        lines.append(f"    _set_{name}(self, {value})")
    # Generated and executed, as dataclasses does: a loop over the fields would cost more than it saves.
    source = "\n".join([f"def __init__({', '.join(parameters)}):", *lines])
    exec(source, names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    init.__annotations__ = dict(kind.__init__.__annotations__)
    kind.__init__ = init
    return made
