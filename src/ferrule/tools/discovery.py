"""Discovers tools in a folder: every `*_tool.py` in it and below, each imported on its own.

A file that can't be imported is a problem with a reason, and doesn't affect the others. Importing a file runs its code:
use this only for folders whose code may run.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from inspect import isabstract
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from ferrule._util.syntax_tree import parse_python
from ferrule.errors import RegistryError, ToolDefinitionError
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.toolset import Toolset, find_method_tools, find_required_arguments

_SUFFIX = "_tool.py"


@dataclass(frozen=True, slots=True)
class DiscoveryProblem:
    """A file, or a folder, without usable tools, and the reason."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def discover_tools(folder: str | Path) -> Iterator[tuple[Path, Any] | DiscoveryProblem]:
    """The items that every tool file in `folder` and its subfolders offers, each with its file, sorted by path.

    Offered are names that a file defines and that don't start with an underscore: `@tool` functions, Toolset instances,
    and Toolset subclasses that need no arguments (unless the file creates an instance of the class itself). What a file
    imports isn't offered again. Hidden folders are skipped, links to folders not followed. `is_tool_file` says which
    names are those of tool files.

    Raises `RegistryError` for a folder that doesn't exist.
    """
    root = Path(folder)
    if not root.is_dir():
        what = "is a file; load it with ToolRegistry.from_file" if root.is_file() else "doesn't exist"
        raise RegistryError(f"the tools folder {str(root)!r} {what}; give an existing folder")
    paths = _find_files(root)
    if not paths:
        yield DiscoveryProblem(root, _describe_empty(root))
    for path in paths:
        try:
            items = _find_items(path)
        except (_UnusableFile, ToolDefinitionError) as error:
            yield DiscoveryProblem(path, str(error))
        else:
            yield from ((path, item) for item in items)


def load_tool_file(path: Path) -> list[Any]:
    """The items that one Python file offers, whatever its name is; see `discover_tools`.

    Raises `RegistryError` with the reason for a file that can't be imported or offers no tool.
    """
    if path.suffix != ".py":
        raise RegistryError(f"{path}: not a Python file: tools are defined in a file that ends with .py")
    try:
        return _find_items(path)
    except _UnusableFile as error:
        raise RegistryError(f"{path}: {error}") from error


def is_tool_file(name: str) -> bool:
    """Whether a file of a folder is one of tools by its name: `*_tool.py`, but not `test_*.py`, which is pytest's."""
    return name.endswith(_SUFFIX) and not name.startswith((".", "test_"))


class _UnusableFile(Exception):  # noqa: N818 - it never leaves this module
    """The reason why a file has no usable tools."""


def _describe_empty(root: Path) -> str:
    others = sorted(path.name for path in root.glob("*.py") if not path.name.startswith("test_"))
    there = f"; there is {others[0]}, which can be given by itself" if others else ""
    return f"no file in this folder has a name that ends with {_SUFFIX}{there}"


def _find_files(root: Path) -> list[Path]:
    found: list[Path] = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if not name.startswith((".", "__"))]
        found += [Path(folder, name) for name in names if is_tool_file(name)]
    return sorted(found, key=lambda path: path.relative_to(root).parts)


class _FreshLoader(SourceFileLoader):
    """Reads the source each time: a cached one may be stale within a second of an edit, and clutters the folder."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _import_file(path: Path) -> ModuleType:
    """Import the file as a module with a unique name, so that equal file names don't collide and pickling works."""
    resolved = path.resolve()
    name = f"ferrule_discovered_{hashlib.sha256(str(resolved).encode()).hexdigest()[:8]}_{path.stem}"
    loader = _FreshLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise _UnusableFile("not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    beside = str(resolved.parent)
    # At the end of the path: a helper file can be imported, but never shadows an installed module.
    sys.path.append(beside)
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _UnusableFile(_describe_error(error, path)) from error
    finally:
        sys.path.remove(beside)
    return module


def _describe_error(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{type(error).__name__}: {error.msg} (line {error.lineno})"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    place = f" (line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {error}{place}"


def _find_items(path: Path) -> list[Any]:
    module = _import_file(path)
    tree = parse_python(path.read_bytes())
    _check_repeated(tree, module)
    imported = _find_imported_names(tree, module)
    own = {name: value for name, value in vars(module).items() if name not in imported and not name.startswith("_")}
    made = {type(value) for value in own.values() if isinstance(value, Toolset)}
    items: list[Any] = []
    passed_over: list[str] = []
    for value in {id(value): value for value in own.values()}.values():
        if isinstance(value, Tool) or (isinstance(value, Toolset) and value.tools):
            items.append(value)
        elif isinstance(value, type) and value not in made:
            if reason := _find_obstacle(value):
                passed_over.append(reason)
            elif issubclass(value, Toolset) and find_method_tools(value) and not isabstract(value):
                items.append(value)
    if not items:
        raise _UnusableFile("; ".join(passed_over) or "it defines no tool: mark a function @tool, or write a Toolset")
    return items


def _find_obstacle(cls: type) -> str:
    """Why the tools of a class can't be offered; empty if they can, or if it has none."""
    if not issubclass(cls, Toolset):
        marked = next((name for name, value in vars(cls).items() if isinstance(value, Tool)), None)
        fault = f"{cls.__name__}.{marked} is marked @tool, but {cls.__name__} is not a Toolset"
        return f"{fault}; write class {cls.__name__}(Toolset)" if marked else ""
    needed = find_required_arguments(cls) if find_method_tools(cls) else []
    return f"{cls.__name__} needs {', '.join(needed)}; make an instance of it in the file" if needed else ""


def _check_repeated(tree: ast.Module, module: ModuleType) -> None:
    """Raise `_UnusableFile` if a second tool has taken the name of an earlier one, which Python forgets silently."""
    bodies = [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]
    for body in bodies:
        lines: dict[str, int] = {}
        for node in body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not _is_marked(node, module):
                continue
            if node.name in lines:
                raise _UnusableFile(
                    f"the tool {node.name!r} is defined twice, in line {lines[node.name]} and in line {node.lineno}; "
                    "rename or remove one of them"
                )
            lines[node.name] = node.lineno


def _is_marked(function: ast.FunctionDef | ast.AsyncFunctionDef, module: ModuleType) -> bool:
    """Whether a function is decorated with `@tool`, under whatever name it was imported."""
    for decorator in function.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(called, ast.Name) and getattr(module, called.id, None) is tool:
            return True
        if isinstance(called, ast.Attribute) and called.attr == tool.__name__:
            return True
    return False


def _find_imported_names(tree: ast.Module, module: ModuleType) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*" and isinstance(node, ast.ImportFrom):
                    origin = sys.modules.get(node.module or "")
                    there = vars(origin) if origin else {}
                    names |= {name for name, value in vars(module).items() if there.get(name) is value}
                else:
                    names.add(alias.asname or alias.name.partition(".")[0])
    return names
