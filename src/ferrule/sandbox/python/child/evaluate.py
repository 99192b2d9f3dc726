"""Runs code as a notebook's cell does: every statement, and then the value of a last expression. In the child."""

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
"""Characters of a traceback that come back: its beginning and its end."""

_OF_PROCESSES: Final = ("multiprocessing", "concurrent.futures.process", "subprocess", "joblib.externals.loky")
_ONE_PROCESS: Final = (
    "The sandbox has this one process and starts no other: compute here, in a loop, with numpy, or with threads"
    " (concurrent.futures.ThreadPoolExecutor)."
)


class CodeFailure(TypedDict):
    """What went wrong, as the answer has it."""

    kind: str
    message: str
    traceback: str
    line: int | None


def make_main_module() -> ModuleType:
    """A fresh `__main__`, in which code that asks for its own name runs as a script does."""
    module = ModuleType("__main__")
    module.__dict__["__builtins__"] = __builtins__
    return module


def evaluate(code: str, name: str, namespace: dict[str, Any]) -> tuple[Any, CodeFailure | None]:
    """Run `code`, called `name` in its tracebacks; its value and what went wrong. Lets no exception out."""
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
    """Run compiled code; an `await` outside of functions gets an event loop of its own."""
    value = eval(code, namespace)
    return asyncio.run(value) if code.co_flags & inspect.CO_COROUTINE else value


def join_threads() -> None:
    """Wait for the threads that a script would wait for."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def describe_failure(error: BaseException, name: str) -> CodeFailure:
    """An exception as its kind, one line, and a traceback through the user's own code only."""
    if isinstance(error, OSError) and _is_about_processes(error):
        error.add_note(_ONE_PROCESS)
    told = traceback.TracebackException.from_exception(error, compact=True)
    lines = [frame.lineno for frame in told.stack if _is_own(frame.filename)]
    for one in _follow_chain(told):
        one.stack = traceback.StackSummary.from_list([frame for frame in one.stack if _is_own(frame.filename)])
    kind, line = "memory" if isinstance(error, MemoryError) else "exception", lines[-1] if lines else None
    message = "".join(told.format_exception_only()).strip()
    if isinstance(error, SyntaxError):
        message = f"{type(error).__name__}: {error.msg}"
        if error.filename == name and not lines:
            kind, line = "syntax", error.lineno
    return {"kind": kind, "message": message[:2000], "traceback": _cut_middle("".join(told.format())), "line": line}


def _is_about_processes(error: BaseException) -> bool:
    """Was it raised where a library starts other processes, or makes what they would share?"""
    modules = (str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(module.startswith(_OF_PROCESSES) for module in modules)


def _is_own(filename: str) -> bool:
    return filename.startswith("<run")


def _follow_chain(told: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    """An exception with its causes and the members of its groups."""
    waiting = [told]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(other for other in (one.__cause__, one.__context__, *(one.exceptions or ())) if other)


def _cut_middle(text: str) -> str:
    half = _TEXT // 2
    return text if len(text) <= _TEXT else f"{text[:half]}\n…\n{text[-half:]}"
