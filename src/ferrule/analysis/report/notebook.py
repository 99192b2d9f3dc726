"""An analysis as a Jupyter notebook (nbformat 4.5) that reads the data and computes the numbers again."""

from __future__ import annotations

import ast
import base64
import json
import math
import os
import pprint
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from platform import python_version
from typing import Any, Final

from ferrule._util.output_files import open_output
from ferrule._util.syntax_tree import parse_python
from ferrule.analysis.report.tasks import sort_tasks
from ferrule.analysis.result import AnalysisResult, TaskExecution
from ferrule.analysis.settings import PYTHON
from ferrule.pages.elements import make_anchor, show_hidden

_MOST_EXPECTED: Final = 20_000
"""Characters of a recorded result that a cell compares with."""
_SUFFIXES: Final = ("image/png", "image/jpeg", "image/gif")


def write_notebook(result: AnalysisResult, path: Path | str) -> None:
    """Write the notebook to a file, which is replaced as a whole; `-` is standard output. Raises `OSError`."""
    path = Path(path)
    folder = Path.cwd() if str(path) == "-" else path.parent
    with open_output(path) as file:
        file.write(render_notebook(result, folder).encode("utf-8"))


def render_notebook(result: AnalysisResult, folder: Path | str) -> str:
    """The notebook as JSON. Its data are read by paths relative to `folder`, where it will be."""
    cells = [
        _make_text("question", "\n\n".join(_describe_answer(result))),
        _make_text("setup-notes", _NOTES.format(requirements=" ".join(_list_requirements(result.versions)))),
        _make_code("setup", "\n".join(_write_setup(result, Path(folder))), []),
        *(cell for task in result.earlier for cell in _make_task(task, "of the earlier analysis")),
        *(cell for task in sort_tasks(result) for cell in _make_task(task)),
    ]
    for count, cell in enumerate((cell for cell in cells if cell["cell_type"] == "code"), 1):
        cell["execution_count"] = count
        for output in cell["outputs"]:
            if output["output_type"] == "execute_result":
                output["execution_count"] = count
    versions = dict(result.versions)
    metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python", "version": versions.get("python", python_version())},
        "ferrule": {"question": result.question, "versions": versions},
    }
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    text = json.dumps(whole, ensure_ascii=False, indent=1) + "\n"
    # Lone surrogates, which models may write and UTF-8 can't hold.
    return text.encode("utf-8", "replace").decode("utf-8")


_NOTES: Final = """The cells below compute the numbers of the answer again and compare them. They need

    pip install {requirements}

A model wrote their code. It ran in a sandbox during the analysis; here it runs with your rights, so read it first."""


def _describe_answer(result: AnalysisResult) -> Iterator[str]:
    yield f"# {_escape_line(result.question)}"
    if result.stopped is not None:
        yield f"*Partial result: {_escape_line(result.stopped)}*"
    if result.focused_answer is not None and result.focused_answer.formatted_answer:
        yield f"**{_escape_line(result.focused_answer.formatted_answer)}**"
    yield _defuse(result.answer or "There is no answer.")
    if result.key_findings:
        yield "\n".join(f"- {_escape_line(finding)}" for finding in result.key_findings)


def _list_requirements(versions: Mapping[str, str]) -> Iterator[str]:
    if "ferrule" not in versions:
        yield "'ferrule[analysis]'"
    for name, version in versions.items():
        if name != "python":
            yield f"'ferrule[analysis]=={version}'" if name == "ferrule" else f"{name}=={version}"


def _write_setup(result: AnalysisResult, folder: Path) -> Iterator[str]:
    files = {name: _make_relative(path, folder) for name, path in _find_sources(result.tables)}
    digests = {table.name: table.digest for table in result.tables}
    yield "from ferrule.analysis.report.notebook_run import NotebookRun"
    yield ""
    yield "run = NotebookRun("
    yield "    globals(),"
    for name, value in (("data", files), ("digests", digests), ("versions", dict(result.versions))):
        yield f"    {name}={_write_literal(value, 5 + len(name))},"
    yield ")"


def _find_sources(tables: Sequence[Any]) -> Iterator[tuple[str, Path]]:
    """The files of tables, each with the name that it was given, which several tables of it have at their start."""
    from ferrule.analysis.data.sources import make_identifier

    for table in tables:
        name: str = table.name
        if any(other.path == table.path and other.part != table.part for other in tables):
            starts = (name[:end] for end in range(1, len(name) + 1))
            name = next((start for start in starts if make_identifier(f"{start}_{table.part}") == name), name)
        yield name, table.path


def _make_relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # on another drive
        return path.as_posix()


def _make_task(task: TaskExecution, origin: str = "") -> Iterator[dict[str, Any]]:
    anchor = make_anchor("task", task.id)
    title = " · ".join(filter(None, (_escape_line(task.id), _escape_line(task.tool), origin)))
    lines = [f"## {title}", _escape_line(task.task_query)]
    method = getattr(task.methodology_data, "primary_approach", "")
    if method:
        lines.append(f"Method: {_escape_line(method)}")
    if task.error:
        lines.append(f"*{task.status}: {_escape_line(task.error)}*")
    is_code = task.tool == PYTHON and task.status == "done" and task.code is not None
    if not is_code and task.result and task.result != task.error:
        lines.append(_defuse(task.result))
    yield _make_text(f"{anchor}-text"[-64:], "\n\n".join(lines))
    if is_code:
        yield _make_code(f"{anchor}-code"[-64:], _write_code(task), list(_make_outputs(task)))
    elif task.status == "done":
        yield _make_code(
            f"{anchor}-code"[-64:], f"run.recall({task.id!r}, {_write_literal(task.value, 15 + len(task.id))});", []
        )


def _write_code(task: TaskExecution) -> str:
    extracted = getattr(task.extracted_data, "extracted_values", None)
    begin = f"run.begin({task.id!r}" + (f", {_write_literal(extracted, 13 + len(task.id))})" if extracted else ")")
    expected = _write_literal(task.value, len("run.end("))
    end = f"run.end({expected})" if task.value is not None and len(expected) <= _MOST_EXPECTED else "run.end()"
    return f"{begin}\n\n{_assign_result(task.code or '').strip()}\n\n{end}"


def _assign_result(code: str) -> str:
    """The code with its last expression assigned to `result`, which its value is where it assigns nothing itself."""
    try:
        body = parse_python(code).body
    except SyntaxError:
        return code
    names = {
        node.id
        for node in ast.walk(ast.Module(body, []))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    if not body or not isinstance(body[-1], ast.Expr) or "result" in names:
        return code
    lines = code.splitlines(keepends=True)
    line = lines[body[-1].lineno - 1].encode("utf-8")
    at = body[-1].col_offset
    lines[body[-1].lineno - 1] = (line[:at] + b"result = " + line[at:]).decode("utf-8")
    return "".join(lines)


def _make_outputs(task: TaskExecution) -> Iterator[dict[str, Any]]:
    if task.output.strip():
        yield {"output_type": "stream", "name": "stdout", "text": _split(task.output)}
    for image in task.figures:
        if image.media_type in _SUFFIXES:
            data = {image.media_type: base64.b64encode(image.data).decode("ascii")}
            yield {"output_type": "display_data", "data": data, "metadata": {}}
    if task.result:
        yield {"output_type": "execute_result", "data": {"text/plain": _split(task.result)}, "metadata": {}}


def _make_text(name: str, text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": _split(text)}


def _make_code(name: str, code: str, outputs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {},
        "execution_count": None,
        "source": _split(code),
        "outputs": list(outputs),
    }


def _split(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _write_literal(value: Any, indent: int) -> str:
    text = pprint.pformat(_make_plain(value), width=100, sort_dicts=False)
    return text.replace("\n", "\n" + " " * indent)


def _make_plain(value: Any) -> Any:
    """JSON data whose `repr` is Python: without infinities, and without numbers of other types."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(name): _make_plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_make_plain(inner) for inner in value]
    return value if isinstance(value, str | int | None) else str(value)


def _escape_line(text: str) -> str:
    """A text as one line of Markdown that shows it as it is."""
    line = " ".join(show_hidden(text).split())
    return re.sub(r"([\\`*_{}\[\]()#+!|<>$~-])", r"\\\1", line)


def _defuse(text: str) -> str:
    """A model's Markdown without HTML, links and images, which a notebook would render or fetch."""
    shown = show_hidden(text).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"(\])(\s*[(:\[])", r"\1\\\2", shown)
