"""Runs code like a notebook cell: every statement, then the value of the last expression. In the child."""

from __future__ import annotations

import ast
import asyncio
import inspect
import linecache
import threading
import traceback
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any, Final, TypedDict

_TEXT: Final = 20_000
"""Characters of a traceback that are returned: its beginning and its end."""

_PROCESS_MODULES: Final = ("multiprocessing", "concurrent.futures.process", "subprocess", "joblib.externals.loky")
_ONE_PROCESS: Final = (
    "The sandbox can't start other processes: compute in this one, in a loop, with numpy, or with threads"
    " (concurrent.futures.ThreadPoolExecutor)."
)


class CodeFailure(TypedDict):
    """What went wrong, as encoded in the answer."""

    kind: str
    message: str
    traceback: str
    line: int | None


def make_main_module() -> ModuleType:
    """Create a fresh `__main__`, so that code with `if __name__ == "__main__"` runs as a script."""
    module = ModuleType("__main__")
    module.__dict__["__builtins__"] = __builtins__
    return module


def evaluate(code: str, name: str, namespace: dict[str, Any]) -> tuple[Any, CodeFailure | None]:
    """Run `code`, called `name` in its tracebacks; returns its value and its failure. Never raises."""
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    try:
        return _run_cell(code, name, namespace), None
    except SystemExit as error:
        return None, None if error.code in {None, 0} else describe_failure(error, name)
    except BaseException as error:  # noqa: BLE001 - whatever user code raises is its result
        return None, describe_failure(error, name)


def _run_cell(code: str, name: str, namespace: dict[str, Any]) -> Any:
    tree = compile(code, name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    _execute(_compile(tree, name, "exec"), namespace)
    if last is None:
        return None
    return _execute(_compile(ast.Expression(last.value), name, "eval"), namespace)


def _compile(tree: ast.Module | ast.Expression, name: str, mode: str) -> CodeType:
    code: CodeType = compile(tree, name, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return code


def _execute(code: CodeType, namespace: dict[str, Any]) -> Any:
    """Run compiled code; a top-level `await` runs in an event loop of its own."""
    value = eval(code, namespace)
    return asyncio.run(value) if code.co_flags & inspect.CO_COROUTINE else value


def join_threads() -> None:
    """Wait for the threads that a script would wait for."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def describe_failure(error: BaseException, name: str) -> CodeFailure:
    """Describe an exception by its kind, one line, and a traceback through the user's own code only."""
    if isinstance(error, OSError) and _is_about_processes(error):
        error.add_note(_ONE_PROCESS)
    report = traceback.TracebackException.from_exception(error, compact=True)
    lines = [frame.lineno for frame in report.stack if _is_own(frame.filename)]
    for one in _follow_chain(report):
        one.stack = traceback.StackSummary.from_list([frame for frame in one.stack if _is_own(frame.filename)])
    kind, line = "memory" if isinstance(error, MemoryError) else "exception", lines[-1] if lines else None
    message = "".join(report.format_exception_only()).strip()
    if isinstance(error, SyntaxError):
        message = f"{type(error).__name__}: {error.msg}"
        if error.filename == name and not lines:
            kind, line = "syntax", error.lineno
    return {"kind": kind, "message": message[:2000], "traceback": _cut_middle("".join(report.format())), "line": line}


def _is_about_processes(error: BaseException) -> bool:
    """Was it raised where a library starts other processes, or creates objects to share with them?"""
    modules = (str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(module.startswith(_PROCESS_MODULES) for module in modules)


def _is_own(filename: str) -> bool:
    return filename.startswith("<run")


def _follow_chain(report: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    """Iterate over an exception, its causes and the members of its groups."""
    waiting = [report]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(other for other in (one.__cause__, one.__context__, *(one.exceptions or ())) if other)


def _cut_middle(text: str) -> str:
    half = _TEXT // 2
    return text if len(text) <= _TEXT else f"{text[:half]}\n…\n{text[-half:]}"
