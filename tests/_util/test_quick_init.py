"""Frozen dataclasses with the quick `__init__` are like those with their own."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import Any

import pytest

from ferrule._util.quick_init import quick_init


@dataclass(frozen=True, slots=True)
class Usual:
    name: str
    size: int = 3
    tags: dict[str, int] = field(default_factory=dict)


@quick_init
@dataclass(frozen=True, slots=True)
class Quick:
    name: str
    size: int = 3
    tags: dict[str, int] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("a",), {}),
        (("a", 4), {}),
        (("a", 4, {"b": 1}), {}),
        (("a",), {"tags": {"b": 1}}),
        ((), {"size": 1, "name": "a"}),
    ],
)
def test_the_same_arguments_make_the_same_value(given: tuple[Any, ...], named: dict[str, Any]) -> None:
    usual, quick = Usual(*given, **named), Quick(*given, **named)
    assert (quick.name, quick.size, quick.tags) == (usual.name, usual.size, usual.tags)
    assert repr(quick) == repr(usual).replace("Usual", "Quick")


def test_each_has_a_default_of_its_own() -> None:
    assert Quick("a").tags is not Quick("a").tags


def test_it_stays_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Quick("a").size = 4  # type: ignore[misc]


def test_it_is_compared_copied_pickled_and_replaced_as_before() -> None:
    quick = Quick("a", tags={"b": 1})
    assert quick == Quick("a", 3, {"b": 1})
    assert quick != Quick("a")
    assert copy.deepcopy(quick) == pickle.loads(pickle.dumps(quick)) == quick
    assert replace(quick, size=5) == Quick("a", 5, {"b": 1})


def test_a_wrong_call_is_told_as_before() -> None:
    with pytest.raises(TypeError, match=r"Quick.__init__\(\) missing 1 required positional argument: 'name'"):
        Quick()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        Quick("a", colour="red")  # type: ignore[call-arg]
    assert list(inspect.signature(Quick).parameters) == list(inspect.signature(Usual).parameters)
