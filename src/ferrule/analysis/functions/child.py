"""Describes callables by introspection.

The text of this file is run in a sandbox, followed by a call of `describe_all`: it imports no ferrule.
"""

import importlib
import inspect
import json
import re
import types
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_LONGEST_DOCSTRING = 20_000


def describe_all(modules: Sequence[str], owners: Sequence[str], paths: Sequence[str]) -> bytes:
    """Describe the callables of `modules`, the public methods of `owners`, and the callables at `paths`.

    Each object is described once, except that each of `paths` always is. The result is JSON in UTF-8: lists of a path,
    its signature (null if it has none), its docstring, and its kind: class, function or attribute.
    """
    with warnings.catch_warnings():
        # Deprecated names warn when they are read.
        warnings.simplefilter("ignore")
        return json.dumps(list(_describe_each(modules, owners, paths))).encode()


def find_object(path: str) -> Any:
    """The object at a dotted path; None if there is none, or if its module can't be imported."""
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for name in parts[count:]:
            found = _read_attribute(found, name)
        return found
    return None


def _describe_each(modules: Sequence[str], owners: Sequence[str], paths: Sequence[str]) -> Iterator[list[Any]]:
    seen: set[Any] = set()
    for path in paths:
        found = find_object(path)
        if found is not None and not isinstance(found, types.ModuleType):
            seen.update((path, _identify(path, found)))
            yield _describe(path, found)
    members = (_list_members(find_object(name), name) for name in modules)
    methods = (_list_methods(find_object(name), name) for name in owners)
    for listed in (*members, *methods):
        for path, found in listed:
            identity = _identify(path, found)
            if path not in seen and identity not in seen and inspect.getdoc(found):
                seen.update((path, identity))
                yield _describe(path, found)


def _identify(path: str, found: Any) -> Any:
    """What is the same for two paths of one object. Bound methods are made anew each time that they are read."""
    return id(found) if isinstance(found, type | types.FunctionType) else path


def _describe(path: str, found: Any) -> list[Any]:
    doc = inspect.getdoc(found) or ""
    kind = "class" if isinstance(found, type) else "function" if callable(found) else "attribute"
    return [path, _read_signature(found) if callable(found) else None, doc[:_LONGEST_DOCSTRING], kind]


def _list_members(module: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The public functions and classes of a module, without those of other packages and exceptions."""
    package = name.partition(".")[0]
    listed = getattr(module, "__all__", None)
    names = listed or [each for each in vars(module or object) if not each.startswith("_")]
    for each in names:
        found = _read_attribute(module, each)
        if not callable(found) or (isinstance(found, type) and issubclass(found, BaseException)):
            continue
        home = getattr(found, "__module__", None) or name
        # Without a list of its names, a module also has those that it imports.
        is_own = home.partition(".")[0].lstrip("_") in (package, "builtins") if listed else home.startswith(name)
        if is_own:
            yield f"{name}.{each}", found


def _list_methods(owner: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name in dir(owner) if owner is not None else ():
        found = None if name.startswith("_") else _read_attribute(owner, name)
        if callable(found) and not isinstance(found, type):
            yield f"{path}.{name}", found


def _read_attribute(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name, None)
    except Exception:  # noqa: BLE001 - a property may raise anything, an experimental name raises ImportError
        return None


def _read_signature(found: Any) -> str | None:
    """The signature without annotations, `self` and addresses."""
    try:
        signature = inspect.signature(found)
    except (ValueError, TypeError):
        return None
    parameters = [one for one in signature.parameters.values() if one.name != "self"]
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in parameters]
    return _ADDRESS.sub("", str(inspect.Signature(plain)))
