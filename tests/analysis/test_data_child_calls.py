"""The functions that `reading` calls in the sandbox exist and take the arguments that it passes."""

import ast
import importlib
import inspect
import sys
from pathlib import Path

import ferrule.analysis.data.reading as reading
from ferrule.analysis.data.child import ferrule_tables
from ferrule.analysis.data.reading import CHILD

PACKAGE = ferrule_tables.__name__
LIBRARIES = {"duckdb", "fsspec", "numpy", "openpyxl", "pandas", "pyarrow", "charset_normalizer"}


def list_calls() -> list[tuple[str, list[str], list[str]]]:
    """Each call by name: the function, its keywords, and the names of dictionaries that are unpacked."""
    tree = ast.parse(Path(reading.__file__).read_text(encoding="utf-8"))
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_call"
    ]
    found = []
    for call in calls:
        function = call.args[2]
        assert isinstance(function, ast.Constant), ast.unparse(call)
        keywords = [each.arg for each in call.keywords if each.arg is not None]
        unpacked = [ast.unparse(each.value) for each in call.keywords if each.arg is None]
        found.append((str(function.value), keywords, unpacked))
    return found


def list_unpacked() -> dict[tuple[str, ...], None]:
    """The keys of each dictionary that is assigned to `arguments`."""
    tree = ast.parse(Path(reading.__file__).read_text(encoding="utf-8"))
    return {
        tuple(key.value for key in node.value.keys if isinstance(key, ast.Constant)): None
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Dict)
        and ast.unparse(node.targets[0]) == "arguments"
    }


def test_each_call_fits_the_signature() -> None:
    calls = list_calls()
    assert len(calls) > 10
    failures = []
    for name, keywords, unpacked in calls:
        module, _, function = name.partition(":")
        signature = inspect.signature(getattr(importlib.import_module(f"{PACKAGE}.{module}"), function))
        choices = list(list_unpacked()) if unpacked else [()]
        if not any(_fits(signature, {*keywords, *choice}) for choice in choices):
            failures.append(f"{name}{signature} is called with {keywords} {unpacked}")
    assert failures == []


def _fits(signature: inspect.Signature, keywords: set[str]) -> bool:
    try:
        signature.bind(**dict.fromkeys(keywords))
    except TypeError:
        return False
    return True


def test_it_imports_nothing_of_ferrule() -> None:
    strangers = []
    for path in (CHILD / "ferrule_tables").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            tops = {name.partition(".")[0] for name in names}
            strangers += [f"{path.name}: {top}" for top in tops - LIBRARIES - sys.stdlib_module_names]
    assert strangers == []
