"""Builds what a release would, installs it into bare environments, and asks a question there."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
QUESTION = "What is 12 * 34?"
ANSWER = "▸ calculator  12 * 34  →  408\n12 × 34 is 408.\n"

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command as somebody without the project's environment would."""
    passed = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FERRULE", "VIRTUAL"))
    }
    environment = {**passed, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1", **variables}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def find_python(version: str) -> str | None:
    """An interpreter of this version that runs: on the path, or one of pyenv's, whose shims may lead nowhere."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for candidate in (shutil.which(name), *map(str, sorted(pyenv.glob(f"versions/{version}*/bin/{name}")))):
        if (
            candidate
            and subprocess.run([candidate, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0
        ):
            return candidate
    return None


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel and the source distribution, built from this folder."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    (wheel,) = folder.glob("ferrule-*.whl")
    (source,) = folder.glob("ferrule-*.tar.gz")
    return {"wheel": wheel, "source": source}


def install(python: str, distribution: Path, folder: Path) -> Path:
    """Install into a new, bare environment, and return the folder of its programs."""
    run(python, "-m", "venv", folder / "venv", cwd=folder)
    programs = folder / "venv" / "bin"
    pip = (programs / "python", "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet", "install")
    run(*pip, distribution, cwd=folder)
    return programs


@pytest.mark.parametrize("version", VERSIONS)
def test_the_wheel_answers_outside_of_a_clone(version: str, distributions: dict[str, Path], tmp_path: Path) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"Python {version} is not on this machine")
    programs = install(python, distributions["wheel"], tmp_path)
    assert run(programs / "ferrule", "ask", QUESTION, cwd=tmp_path).stdout == ANSWER
    assert run(programs / "ferrule", "ask", QUESTION, cwd=tmp_path, LC_ALL="C").stdout == ANSWER
    shown = run(programs / "python", "-c", "import ferrule; print(ferrule.__file__)", cwd=tmp_path)
    assert shown.stdout.startswith(str(tmp_path / "venv"))


def test_the_source_distribution_installs_and_answers(distributions: dict[str, Path], tmp_path: Path) -> None:
    programs = install(sys.executable, distributions["source"], tmp_path)
    assert run(programs / "ferrule", "ask", QUESTION, cwd=tmp_path).stdout == ANSWER


def test_pipx_installs_the_wheel(distributions: dict[str, Path], tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "pipx", cwd=tmp_path)
    programs = tmp_path / "pipx" / "bin"
    run(programs / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "pipx", cwd=tmp_path)
    places = {"PIPX_HOME": str(tmp_path / "home"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    run(programs / "pipx", "install", "--python", sys.executable, distributions["wheel"], cwd=tmp_path, **places)
    assert run(tmp_path / "bin" / "ferrule", "ask", QUESTION, cwd=tmp_path).stdout == ANSWER


def test_the_source_distribution_holds_what_a_packager_needs(distributions: dict[str, Path]) -> None:
    with tarfile.open(distributions["source"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = run("git", "ls-files", "src", "tests", "docs", "benchmarks", "fuzz", "examples", cwd=ROOT).stdout.split()
    assert not set(tracked) - names
    assert {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md"} <= names
    assert {".ci/run", "Makefile", "constraints.txt", "examples/README.md", "mkdocs.yml", "pyproject.toml"} <= names
