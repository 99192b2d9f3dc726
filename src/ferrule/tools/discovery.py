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
from ferrule.errors import RegistryError
from ferrule.tools.decorator import Tool
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
    """The items that every `*_tool.py` in `folder` and its subfolders offers, each with its file, sorted by path.

    Offered are names that a file defines and that don't start with an underscore: `@tool` functions, Toolset instances,
    and Toolset subclasses that need no arguments (unless the file creates an instance of the class itself). What a file
    imports isn't offered again. Hidden folders are skipped, links to folders not followed.

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
        except _UnusableFile as error:
            yield DiscoveryProblem(path, str(error))
        else:
            yield from ((path, item) for item in items)


def load_tool_file(path: Path) -> list[Any]:
    """The items that one Python file offers, whatever its name is; see `discover_tools`.

    Raises `RegistryError` with the reason for a file that can't be imported or offers no tool.
    """
    if path.suffix != ".py":
        raise RegistryError(f"{path} is not a Python file: tools are defined in a file that ends with .py")
    try:
        return _find_items(path)
    except _UnusableFile as error:
        raise RegistryError(f"{path}: {error}") from error


class _UnusableFile(Exception):  # noqa: N818 - it never leaves this module
    """The reason why a file has no usable tools."""


def _describe_empty(root: Path) -> str:
    others = sorted(path.name for path in root.glob("*.py"))
    there = f"; there is {others[0]}, which can be given by itself" if others else ""
    return f"no file in this folder has a name that ends with {_SUFFIX}{there}"


def _find_files(root: Path) -> list[Path]:
    found: list[Path] = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if not name.startswith((".", "__"))]
        found += [Path(folder, name) for name in names if name.endswith(_SUFFIX) and not name.startswith(".")]
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
    imported = _find_imported_names(path, module)
    own = {name: value for name, value in vars(module).items() if name not in imported and not name.startswith("_")}
    made = {type(value) for value in own.values() if isinstance(value, Toolset)}
    items: list[Any] = []
    passed_over: list[str] = []
    for value in {id(value): value for value in own.values()}.values():
        if isinstance(value, Tool) or (isinstance(value, Toolset) and value.tools):
            items.append(value)
        elif isinstance(value, type) and issubclass(value, Toolset) and value not in made and find_method_tools(value):
            needed = find_required_arguments(value)
            if needed:
                passed_over.append(f"{value.__name__} needs {', '.join(needed)}; make an instance of it in the file")
            elif not isabstract(value):
                items.append(value)
    if not items:
        raise _UnusableFile("; ".join(passed_over) or "it defines no tool: mark a function @tool, or write a Toolset")
    return items


def _find_imported_names(path: Path, module: ModuleType) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(parse_python(path.read_bytes())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*" and isinstance(node, ast.ImportFrom):
                    origin = sys.modules.get(node.module or "")
                    there = vars(origin) if origin else {}
                    names |= {name for name, value in vars(module).items() if there.get(name) is value}
                else:
                    names.add(alias.asname or alias.name.partition(".")[0])
    return names
