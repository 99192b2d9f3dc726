"""Runs a task's code and its result checks, and explains its error. This file's text is run in the sandbox.

It may use only the standard library, what the code itself has loaded, and friendly-traceback. It runs beside code that
a model wrote, which can change all of it, so `runs` reads what it returns as it would read the code's own words.
"""

from __future__ import annotations

import ast
import asyncio
import copy
import inspect
import io
import linecache
import random
import re
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from types import CodeType, FrameType, TracebackType
from typing import Any, cast

NAME = "<run>"
_LONGEST = 300
_MOST_NAMES = 30
_EXPLAINING_SECONDS = 2.0


def run_task(
    namespace: dict[str, Any], code: str, values: dict[str, Any], checks: list[str], seconds: float
) -> dict[str, Any]:
    """Run `code`, then each check, `seconds` for all checks together; returns the result or what is known of the error.

    Raises `MemoryError`, since too little is left to explain it.
    """
    namespace["extracted_values"] = values
    _fix_seeds()
    linecache.cache[NAME] = (len(code), None, code.splitlines(keepends=True), NAME)
    try:
        last = _run_cell(code, NAME, namespace)
    except MemoryError:
        raise
    except SystemExit as ended:
        if ended.code not in {None, 0}:
            return {"error": explain_error(ended)}
        last = None
    except BaseException as error:  # noqa: BLE001 - whatever the code raises is its outcome
        return {"error": explain_error(error)}
    result = _collect_relation(namespace.get("result", last))
    found = [{"status": status, "detail": detail} for status, detail in _run_checks(namespace, result, checks, seconds)]
    notes, kind = _write_value(result)
    return {"result": result, "checks": found, "notes": notes, "type": kind}


def _fix_seeds() -> None:
    """Seed what code draws from without a seed of its own, so that a task run again has the same numbers."""
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)


def _run_cell(code: str, name: str, namespace: dict[str, Any]) -> Any:
    """Run code like a notebook's cell: returns the value of its last line if that is an expression."""
    tree = compile(code, name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    _execute(tree, name, "exec", namespace)
    return None if last is None else _execute(ast.Expression(last.value), name, "eval", namespace)


def _execute(tree: ast.Module | ast.Expression, name: str, mode: str, namespace: dict[str, Any]) -> Any:
    code: CodeType = compile(tree, name, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    value = eval(code, namespace)
    return asyncio.run(value) if code.co_flags & inspect.CO_COROUTINE else value


def _collect_relation(result: Any) -> Any:
    """The rows of a lazy relation of duckdb; anything else as it is."""
    return result.df() if type(result).__module__.partition(".")[0] in {"duckdb", "_duckdb"} else result


def _write_value(result: Any) -> tuple[list[str], str]:
    """Leave the result for later tasks in the run's folder; returns what of it is not as it was, and its type."""
    try:
        values = sys.modules["ferrule_tables.values"]
        return list(values.write_value(result)), str(values.describe_type(result))
    except BaseException as error:  # noqa: BLE001 - such as too little memory; the result itself is there
        return [f"later tasks have the result as it is shown here: it can't be kept ({type(error).__name__})"], ""


# Checks of the result.


def _run_checks(namespace: dict[str, Any], result: Any, checks: list[str], seconds: float) -> Iterator[tuple[str, str]]:
    """The status of each check, and what it found."""
    scope = {**namespace, "result": _copy(result)}
    left = seconds
    for code in checks:
        began = time.monotonic()
        try:
            with _limit_seconds(max(left, 0.01)), redirect_stdout(_Nowhere()):
                found = _run_check(code, dict(scope))
        except BaseException as error:  # noqa: BLE001 - a check that fails to run says nothing of the result
            found = "not run", _cut("".join(traceback.format_exception_only(error)).strip())
        yield found
        left -= time.monotonic() - began


class _Nowhere(io.TextIOBase):
    """Where the output of checks goes: it is nobody's result, and more than the limit would end the run."""

    def write(self, text: str, /) -> int:
        return len(text)


def _run_check(code: str, scope: dict[str, Any]) -> tuple[str, str]:
    value = _run_cell(code, "<check>", scope)
    if value is None:
        return "not run", "its last line is no expression that is true or false"
    # An array or a column of comparisons holds if all of them do.
    while hasattr(value, "all") and getattr(value, "ndim", False):
        value = value.all()
    return ("passed", "") if value else ("failed", _describe_comparison(code, scope))


def _describe_comparison(code: str, scope: dict[str, Any]) -> str:
    """The values on both sides of the comparison that a check ends with."""
    last = ast.parse(code).body[-1]
    if not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Compare):
        return "false"
    sides = [last.value.left, *last.value.comparators]
    values = [_execute(ast.Expression(side), "<check>", "eval", scope) for side in sides]
    plain = [value.item() if getattr(value, "shape", None) == () else value for value in values]
    return f"false, with {' and '.join(_cut(' '.join(repr(value).split()), 80) for value in plain)}"


def _copy(result: Any) -> Any:
    """A copy, so that no check changes the result; the result itself if it can't be copied."""
    try:
        return copy.deepcopy(result)
    except Exception:  # noqa: BLE001 - such as a module or a lock within it
        return result


@contextmanager
def _limit_seconds(seconds: float) -> Iterator[None]:
    def end(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"it took longer than the {seconds:.1f} s that were left")

    previous = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


# The error.


def explain_error(error: BaseException) -> dict[str, Any]:
    """What is known of an error: the fields of an `ErrorContext`, and the traceback through the code's own lines."""
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if _is_own(frame)]
    line = frames[-1][1] if frames else None
    if isinstance(error, SyntaxError) and error.filename == NAME and not frames:
        line = error.lineno
    lines = "".join(traceback.format_exception_only(error)).strip()
    message = error.msg if isinstance(error, SyntaxError) else lines.removeprefix(f"{type(error).__name__}: ")
    hints = _ask_friendly(error, frames)
    hints += (
        _describe_names(error, *frames[-1], is_near_known=any("Did you mean" in hint for hint in hints))
        if frames
        else ()
    )
    return {
        "type": type(error).__name__,
        "message": message[:2000],
        "line": line,
        "name": _find_name(error),
        "fixes": [_cut(" ".join(hint.split()), 600) for hint in hints],
        "traceback": "".join(traceback.format_list(_summarize(frames))) + lines,
    }


def _is_own(frame: FrameType) -> bool:
    return frame.f_code.co_filename == NAME


def _summarize(frames: list[tuple[FrameType, int]]) -> list[traceback.FrameSummary]:
    return [traceback.FrameSummary(NAME, line, frame.f_code.co_name) for frame, line in frames[-10:]]


def _find_name(error: BaseException) -> str:
    """The name, attribute or key that doesn't exist."""
    if isinstance(error, KeyError) and len(error.args) == 1:
        bound = re.match(r"there is no (?:table|result) '([^']*)'", str(error.args[0]))
        return bound[1] if bound else _cut(str(error.args[0]), 100)
    if isinstance(error, UnboundLocalError | NameError | AttributeError | ImportError):
        return _cut(str(error.name or ""), 100)
    return ""


def _ask_friendly(error: BaseException, frames: list[tuple[FrameType, int]]) -> list[str]:
    """The cause and the suggestion of friendly-traceback, if it has some and is installed."""
    try:
        with _limit_seconds(_EXPLAINING_SECONDS):
            from friendly_traceback.core import FriendlyTraceback

            # Reading the sources of the libraries in between takes most of a second, and explains nothing.
            error.__cause__ = error.__context__ = None
            explained: Any = FriendlyTraceback(type(error), error, cast("TracebackType", _link_frames(frames)))
            explained.compile_info()
    except BaseException:  # noqa: BLE001 - an explanation that fails is none
        return []
    texts = [str(explained.info.get(part) or "") for part in ("suggest", "cause")]
    # Where it knows nothing it says so, and where to report it.
    return [text.replace("In your program, no", "No") for text in texts if text and "riendly" not in text]


def _link_frames(frames: list[tuple[FrameType, int]]) -> TracebackType | None:
    trace: TracebackType | None = None
    for frame, line in reversed(frames):
        trace = TracebackType(trace, frame, frame.f_lasti, line)
    return trace


def _describe_names(error: BaseException, frame: FrameType, line: int, *, is_near_known: bool) -> Iterator[str]:
    """What the values are that the failing line uses, and which of their keys or columns are near the missing one."""
    from difflib import get_close_matches

    text = linecache.getline(NAME, line)
    names = {**frame.f_globals, **frame.f_locals}
    missing = _find_name(error)
    words = dict.fromkeys(word for word in _list_words(text) if word in names)
    for word in words:
        keys = _list_keys(names[word])
        near = get_close_matches(missing.lower(), [key.lower() for key in keys], 1) if missing else []
        if isinstance(error, KeyError | AttributeError) and near and not is_near_known:
            right = next(key for key in keys if key.lower() == near[0])
            yield f"Did you mean {right!r}? `{word}` has it."
    shown = [f"`{word}` is {_describe_value(names[word])}" for word in words if not _is_plain(names[word])]
    if shown and isinstance(error, LookupError | AttributeError | TypeError | ValueError):
        yield f"On that line {', '.join(shown)}."


def _list_words(text: str) -> list[str]:
    try:
        tree = ast.parse(text.strip().rstrip(":"))
    except SyntaxError:
        # The first line of a compound statement, or one of several lines.
        return "".join(c if c.isidentifier() or c.isdigit() else " " for c in text).split()
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return [node.id for node in sorted(found, key=lambda node: (node.lineno, node.col_offset))]


def _is_plain(value: Any) -> bool:
    return inspect.ismodule(value) or callable(value)


def _list_keys(value: Any) -> list[str]:
    columns = getattr(value, "columns", None)
    keys = columns if columns is not None else value if isinstance(value, Mapping) else ()
    return [str(key) for key in list(keys)[:1000]]


def _describe_value(value: Any) -> str:
    kind = type(value).__name__
    keys = _list_keys(value)
    shown = ", ".join(map(repr, keys[:_MOST_NAMES])) + (", …" if len(keys) > _MOST_NAMES else "")
    shape = getattr(value, "shape", None)
    size = f" of shape {shape}" if isinstance(shape, tuple) else ""
    if keys:
        return f"a {kind}{size} with the {'columns' if hasattr(value, 'columns') else 'keys'} {shown}"
    if isinstance(value, str | int | float | bool | None):
        return _cut(repr(value), 60)
    return f"a {kind}{size}"


def _cut(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
