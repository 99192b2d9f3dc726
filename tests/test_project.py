"""Holds the project to its own rules: what importing loads, which way imports point, what the wheel holds."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import ferrule

sys.path.append(str(Path(__file__).parents[1] / "docs"))

from draw_floors import FLOOR_OF, MODULES, PICTURE, draw, find_imports, room_of

from tables import each_case

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "ferrule"
UNTRACKED = {".git", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", "__pycache__"}
UNTRACKED_AT_ROOT = {"runs", "dist", "build", "site"}


def loaded_by(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after some code."""
    code += "\nimport sys; print('\\n' + ' '.join({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_importing_loads_nothing_but_itself() -> None:
    heavy = {"numpy", "jinja2", "rich", "typer", "griffe", "jsonschema", "pydantic", "torch", "transformers"}
    assert loaded_by("import ferrule") & {*heavy, "tokenizers", "safetensors", "asyncio"} == set()


def test_a_program_begins_without_what_it_may_not_need() -> None:
    heavy = {
        "numpy",
        "jinja2",
        "rich",
        "typer",
        "griffe",
        "jsonschema",
        "pydantic",
        "torch",
        "transformers",
        "tempfile",
    }
    assert loaded_by("from ferrule import model, tool") & heavy == set()


def test_help_loads_none_of_the_heavy_parts() -> None:
    code = "import sys; sys.argv = ['ferrule', '--help']\nfrom ferrule.cli import main\n"
    code += "try: main()\nexcept SystemExit: pass"
    heavy = {"numpy", "jinja2", "griffe", "jsonschema", "pydantic", "torch", "transformers", "tokenizers", "asyncio"}
    assert loaded_by(code) & heavy == set()


def test_offered_tools_need_no_extra() -> None:
    code = "from ferrule import *\nfrom ferrule import calculator\ncalculator.parameters"
    assert loaded_by(code) & {"torch", "transformers", "tokenizers", "safetensors", "numpy", "rich"} == set()


@each_case("name", ferrule.__all__)
def test_every_exported_name_is_there(name: str) -> None:
    assert getattr(ferrule, name) is not None
    assert name in dir(ferrule)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'tooool'"):
        _ = ferrule.tooool


@pytest.mark.parametrize(
    "first",
    [
        "",
        "import ferrule.tools.decorator\n",
        "from ferrule.tools.registry import ToolRegistry\n",
    ],
)
def test_tool_is_the_decorator_however_its_module_was_loaded(first: str) -> None:
    code = f"{first}from ferrule import tool\nimport ferrule\nassert tool is ferrule.tool\n"
    code += "@tool\ndef f() -> str: return ''\nassert f.name == 'f'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_module_has_a_floor() -> None:
    assert {room_of(module) for module in MODULES if module != "ferrule"} - set(FLOOR_OF) == set()


def test_imports_point_down() -> None:
    upward = [
        f"{module} → {target}"
        for module in MODULES
        if module != "ferrule"
        for target in find_imports(module)
        if target != "ferrule" and not points_down(room_of(module), room_of(target))
    ]
    upward += [
        f"{module} → {text!r}"
        for module in MODULES
        if module != "ferrule"
        for text, target in find_named_modules(module)
        if text not in NAMED_UPWARD.get(module, ()) and not points_down(room_of(module), room_of(target))
    ]
    assert upward == []


NAMED_UPWARD = {
    "ferrule.models.checkpoints.loading": ("ferrule.embedded:load_embedded_model", "ferrule.embedded.guide:load_guide")
}
"""The one place from which a room above is loaded by its name, so that nothing below knows what steers one model."""
_MODULE_NAME = re.compile(r"ferrule(?:\.\w+)+(?::\w+)?")


def find_named_modules(module: str) -> Iterator[tuple[str, str]]:
    """The strings of a module that name another one, or something in it, with that one."""
    text = MODULES[module].read_text(encoding="utf-8")
    # Most modules have none, and need no parsing.
    for node in ast.walk(ast.parse(text)) if re.search("[\"']ferrule[.]", text) else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _MODULE_NAME.fullmatch(node.value):
            target = node.value.partition(":")[0]
            while target not in MODULES:
                target = target.rpartition(".")[0]
            if target != "ferrule":
                yield node.value, target


def points_down(importing: str, imported: str) -> bool:
    own, other = FLOOR_OF[importing], FLOOR_OF[imported]
    return importing == imported or other < own or other == own == 1


def test_only_the_commands_import_the_package_itself() -> None:
    inside = {module for module in MODULES if module != "ferrule" and "ferrule" in find_imports(module)}
    assert {module for module in inside if room_of(module) not in {"cli", "__main__"}} == set()


def test_the_picture_of_the_floors_is_drawn_from_the_imports() -> None:
    assert PICTURE.read_text(encoding="utf-8") == draw(), "draw it again: python docs/draw_floors.py"


def test_few_modules_lie_loose_at_the_top() -> None:
    loose = [path.name for path in PACKAGE.glob("*.py") if path.name not in {"__init__.py", "__main__.py"}]
    assert len(loose) <= 8, loose


def test_no_room_is_named_like_an_export() -> None:
    rooms = {room_of(module) for module in MODULES if module != "ferrule"}
    assert rooms & set(ferrule.__all__) == set()


def test_a_class_that_is_exported_stands_once() -> None:
    names = Counter(
        name
        for path in MODULES.values()
        for name in re.findall(r"^class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert [name for name in ferrule.__all__ if names[name] > 1] == []


def test_no_source_file_is_long() -> None:
    lengths = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in MODULES.items()}
    assert {module: length for module, length in lengths.items() if length > 500} == {}


def test_every_file_says_what_it_is_for() -> None:
    texts = {module: path.read_text(encoding="utf-8") for module, path in MODULES.items()}
    assert [module for module, text in texts.items() if not re.match(r'r?"""\s*\S', text)] == []


def tracked() -> Iterator[Path]:
    for folder, inner, files in os.walk(ROOT):
        left_out = UNTRACKED | UNTRACKED_AT_ROOT if folder == str(ROOT) else UNTRACKED
        inner[:] = [name for name in inner if name not in left_out]
        yield from (Path(folder, name) for name in files)


def test_no_file_names_a_package_registry() -> None:
    # Written in two halves, so that this file is not the first to be found.
    hosts = [b"py" + b"pi.", b"python" + b"hosted", b"download.py" + b"torch", b"index" + b"-url", b"find" + b"-links"]
    found = re.compile(b"|".join(map(re.escape, hosts)))
    assert [path.name for path in tracked() if found.search(path.read_bytes())] == []


def test_changes_begin_with_this_version() -> None:
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert first is not None
    assert first[1] == ferrule.__version__


def test_constraints_pin_torch_exactly_as_the_extras_do() -> None:
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins if not pin.startswith("#"))
    wanted = set(re.findall(r"torch==[\d.]+", (ROOT / "pyproject.toml").read_text(encoding="utf-8")))
    assert wanted == {pin for pin in pins if pin.startswith("torch==")}
    assert wanted == set(re.findall(r"torch==[\d.]+", (ROOT / "Makefile").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of the files in a wheel built from this folder."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*command, "--wheel-dir", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("ferrule-*.whl")
    return set(zipfile.ZipFile(built).namelist())


def test_the_wheel_holds_the_whole_package(wheel: set[str]) -> None:
    files = {path for path in PACKAGE.rglob("*") if path.is_file() and not UNTRACKED & set(path.parts)}
    missing = {str(path.relative_to(PACKAGE.parent)) for path in files} - wheel
    assert not missing
    assert {"ferrule/py.typed", "ferrule/training/synth/words.txt"} <= wheel
    assert any(name.startswith("ferrule/training/synth/templates/") for name in wheel)
    assert any(name.startswith("ferrule/embedded/phrasings/") for name in wheel)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_the_wheel_holds_the_embedded_model(wheel: set[str], name: str) -> None:
    assert f"ferrule/embedded/{name}" in wheel


def test_the_wheel_holds_its_licence_and_nothing_beside_the_package(wheel: set[str]) -> None:
    own = f"ferrule-{ferrule.__version__}.dist-info/"
    assert f"{own}licenses/LICENSE" in wheel
    assert {name.partition("/")[0] for name in wheel} == {"ferrule", own.rstrip("/")}


def test_a_skip_that_no_line_allows_fails_a_strict_run(tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "skips.txt").write_text("# allowed\nthe * is missing\n", encoding="utf-8")
    (tmp_path / "test_a.py").write_text(
        "import pytest\ndef test_b(): pytest.skip('the camel is missing')\ndef test_c(): pytest.skip('too hot')\n",
        encoding="utf-8",
    )
    done = strictly(tmp_path)
    assert done.returncode == 1
    assert "the camel is missing: 1\n    test_a.py::test_b\ntoo hot: 1  (not on tests/skips.txt)\n" in done.stdout
    (tmp_path / "skips.txt").write_text("the * is missing\ntoo hot\n", encoding="utf-8")
    assert strictly(tmp_path).returncode == 0


def test_a_test_that_waits_for_ever_ends_and_says_where(tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_a.py").write_text(
        "import asyncio, pytest, threading\n\n"
        "@pytest.mark.timeout(1)\n"
        "def test_b():\n    threading.Event().wait()\n\n"
        "@pytest.mark.timeout(1)\n"
        "async def test_c():\n    await asyncio.Event().wait()\n\n"
        "def test_d():\n    pass\n",
        encoding="utf-8",
    )
    configured = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *configured, "test_a.py"]
    lenient = {**os.environ, "FERRULE_STRICT_SKIPS": "0"}
    done = subprocess.run(command, cwd=tmp_path, env=lenient, capture_output=True, text=True, check=False)
    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert re.search(r"test_a\.py:5: $", done.stdout, re.MULTILINE)
    assert f"{tmp_path}/test_a.py:9: in test_c" in done.stdout


def strictly(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), "test_a.py"]
    strict = {**os.environ, "FERRULE_STRICT_SKIPS": "1"}
    return subprocess.run(command, cwd=folder, env=strict, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_default_install_is_small() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "startup.py"), "--install", "--runs", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    installed = json.loads(done.stdout)["install"]
    assert installed["megabytes"] < installed["limit"]
    assert "torch" not in installed["packages"]
