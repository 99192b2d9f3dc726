"""Runs every example in README.md and docs/, page by page, in the order of the page and in an empty folder.

    ```python     runs, with `await` allowed; the examples of a page share their names
    ```pycon      is a session whose output must be as shown
    ```console    holds lines `$ command`, each with its output below it; `...` stands for any text

`<!-- file: NAME -->` before a block of any language writes it to that file. `<!-- not run: REASON -->` before one
keeps it from running; it is then listed among the skipped tests, with its reason.
"""

import asyncio
import doctest
import inspect
import logging
import os
import subprocess
import sys
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

sys.path.append(str(Path(__file__).parents[1] / "docs"))

from documented_blocks import Block, read_blocks, split_commands

from function_cache import function_cache

__all__ = ["function_cache"]

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN = ("python", "pycon", "console")
SHELLS = ("bash", "sh", "shell")
TUTORIALS = ("README", "quickstart", "coming-from")
"""The pages whose examples are pasted into files, so that none may await outside of a function."""
SLOW = ("cli", "mcp", "training")
"""The pages that take longest; the tests of `cli` and `mcp` and `cli/test_making.py` run the same commands on less."""
BLOCKS = [block for page in PAGES for block in read_blocks(page)]


@pytest.fixture(autouse=True)
def _levels_as_they_were() -> Iterator[None]:
    """An example may silence a logger, which other tests of the process want to hear."""
    known = [logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
    levels = {logger: logger.level for logger in known}
    yield
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            logger.setLevel(levels.get(logger, logging.NOTSET))


@pytest.fixture(autouse=True)
def user_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders for what examples keep of a user, instead of those of whoever runs the tests."""
    home = tmp_path_factory.mktemp("home")
    for kind in ("DATA", "STATE", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))
    return home


@pytest.fixture
def names() -> Iterator[dict[str, object]]:
    """A module's namespace that annotations written as text are resolved in, as they are in a file."""
    module = ModuleType("documented_example")
    sys.modules[module.__name__] = module
    yield vars(module)
    del sys.modules[module.__name__]


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow) if page.stem in SLOW else page for page in PAGES],
    ids=lambda page: page.stem,
)
def test_examples(
    page: Path,
    names: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    if page.stem == "analysis":
        # It takes seconds to build, and other tests need it as well.
        monkeypatch.setenv("XDG_CACHE_HOME", str(request.getfixturevalue("function_cache")))
    for block in read_blocks(page):
        if block.kind == "file":
            path = tmp_path / block.note
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.is_left_out:
            continue
        elif block.language == "python":
            run_python(block, names)
        elif block.language == "pycon":
            run_session(block, names)
        elif block.language == "console":
            run_commands(block, tmp_path)


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.is_left_out], ids=lambda block: block.place)
def test_example_left_out(block: Block) -> None:
    pytest.skip(f"not run: {block.note}")


def awaits_at_the_top(block: Block) -> bool:
    """Whether a block of Python has an `await` outside of a function."""
    if block.language != "python" or block.kind:
        return False
    try:
        compile(block.text, block.place, "exec")
    except SyntaxError:
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_once_how_its_examples_await(page: Path) -> None:
    needed = any(map(awaits_at_the_top, read_blocks(page)))
    assert page.read_text(encoding="utf-8").count("`python -m asyncio`") == (1 if needed else 0)


PASTED = [block for block in BLOCKS if block.page.stem in TUTORIALS and block.language == "python" and not block.kind]


@pytest.mark.parametrize("block", PASTED, ids=lambda block: block.place)
def test_an_example_of_a_tutorial_runs_pasted_into_a_file(block: Block, tmp_path: Path) -> None:
    pasted = tmp_path / "pasted.py"
    pasted.write_text(block.text, encoding="utf-8")
    done = subprocess.run([sys.executable, pasted], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_shell_examples_are_written_as_sessions() -> None:
    assert [block.place for block in BLOCKS if block.language in SHELLS and block.kind is None] == []


def run_python(block: Block, names: dict[str, object]) -> None:
    """Run a block; its line numbers in a traceback are those of the page."""
    padded = "\n" * (block.line - 1) + block.text
    code = compile(padded, str(block.page), "exec", PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if code.co_flags & inspect.CO_COROUTINE:

        async def waited() -> None:
            await eval(code, names)

        asyncio.run(waited())
    else:
        exec(code, names)


def run_session(block: Block, names: dict[str, object]) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, names, block.place, str(block.page), block.line - 1)
    told: list[str] = []
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=told.append, clear_globs=False)
    assert results.failed == 0, "".join(told)
    names.update(test.globs)


def run_commands(block: Block, folder: Path) -> None:
    for command, wanted in split_commands(block):
        got = shell(command, folder)
        same = doctest.OutputChecker().check_output(
            wanted.rstrip() + "\n", got.rstrip() + "\n", doctest.ELLIPSIS | doctest.DONT_ACCEPT_BLANKLINE
        )
        assert same, f"{block.place}\n$ {command}\nis shown with\n{wanted}\nand printed\n{got}"


def shell(command: str, folder: Path) -> str:
    """What a command prints, both streams, as it would to someone with the environment active and no terminal."""
    home = folder / ".home"
    home.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "NO_COLOR": "1",
        "TERM": "dumb",
        "COLUMNS": "120",
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    return done.stdout
