"""Commands can't write what ferrule itself runs from, wherever it is in what they may write."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from installed import ATTACKS, PLANT, SOURCE, make_environment, run
from test_shell_chores import wheel

from ferrule.errors import SandboxInputError, SandboxUnavailable
from ferrule.sandbox.installation import Installation
from ferrule.sandbox.shell import ShellSandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")

TIERS = pytest.mark.parametrize("tier", ["full", "container"])
# By name: where the environment is, and what leads there.
SHAPES = {"in the workspace": (".venv", ""), "deeper": ("tools/deep/env", ""), "behind a link": ("env", "kept/real")}
SHAPED = pytest.mark.parametrize("shape", SHAPES)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that others are copied from: what it is, its interpreter finds out by where it lies."""
    place = tmp_path_factory.mktemp("made") / "environment"
    make_environment(place)
    return place


def shaped(folder: Path, shape: str, environment: Path) -> tuple[Path, dict[str, str]]:
    """A workspace, and the words of attacks on it."""
    env, real = SHAPES[shape]
    workspace = folder / "workspace"
    workspace.mkdir()
    shutil.copytree(environment, workspace / (real or env), symlinks=True)
    if real:
        (workspace / env).symlink_to(real)
    words = {"env": env, "real": real or env, "canary": str(folder / "canary")}
    return workspace, words | {"python": sys.executable, "top": (real or env).partition("/")[0]}


def has_run(workspace: Path, words: dict[str, str]) -> bool:
    """Whether the environment's interpreter runs what was planted, which it is started for here."""
    program = workspace / words["env"] / "bin/python"
    if program.exists():
        subprocess.run([str(program), "-c", ""], capture_output=True, check=False)
    return Path(words["canary"]).exists()


@SHAPED
@pytest.mark.parametrize("attack", ATTACKS)
def test_uncontained_it_is_run(tmp_path: Path, shape: str, attack: str, environment: Path) -> None:
    workspace, words = shaped(tmp_path, shape, environment)
    subprocess.run(["/bin/sh", "-c", ATTACKS[attack].format(**words)], cwd=workspace, check=False, timeout=300)
    assert has_run(workspace, words)


@pytest.mark.slow
@TIERS
@SHAPED
def test_contained_it_is_not(tmp_path: Path, shape: str, tier: str, environment: Path) -> None:
    workspace, words = shaped(tmp_path, shape, environment)
    commands = [attack.format(**words) for attack in ATTACKS.values()]
    shown = run(
        workspace,
        f"""
        async def main():
            for mode in ("workspace-write", "full"):
                async with ShellSandbox(".", tier={tier!r}, mode=mode, readable=["."]) as shell:
                    for command in {json.dumps(commands)}:
                        print((await shell.run(command)).output)
            print("value:", await python())
        asyncio.run(main())
        """,
        environment=workspace / words["env"],
    )
    assert "value: 2" in shown
    assert not has_run(workspace, words), shown
    assert (workspace / words["env"] / "bin/python").exists()


@TIERS
def test_a_project_installed_for_editing_customizes_nothing(tmp_path: Path, tier: str) -> None:
    """Its folder is on the interpreter's path, and stays writable."""
    workspace, canary = tmp_path / "workspace", tmp_path / "canary"
    (workspace / "src/project").mkdir(parents=True)
    make_environment(workspace / ".venv", workspace / "src", workspace / "absent", workspace / "archive.zip")
    plant = PLANT.format(canary=canary)
    zipped = "import sys,zipfile; zipfile.ZipFile(sys.argv[1], chr(119)).writestr(sys.argv[2], sys.argv[3])"
    commands = [
        f"{plant} src/sitecustomize.py; mkdir src/sitecustomize; {plant} src/sitecustomize/__init__.py",
        "mv src other && mkdir src; echo edited >src/project/module.py",
        f"{plant} src/sitecustomize.py; mkdir absent && {plant} absent/sitecustomize.py",
        f'{sys.executable} -c "{zipped}" archive.zip sitecustomize.py "import os; os.mkdir({str(canary)!r})"',
        "chmod 500 src",
        f"chmod 700 src; rm -rf src/sitecustomize*; {plant} src/sitecustomize.py",
    ]
    shown = run(
        workspace,
        f"""
        async def main():
            async with ShellSandbox(".", tier={tier!r}, readable=[{sys.prefix!r}, {sys.base_prefix!r}]) as shell:
                for command in {json.dumps(commands)}:
                    print((await shell.run(command)).output)
            print("value:", await python())
        asyncio.run(main())
        """,
    )
    (workspace / "src").chmod(0o700)
    assert "value: 2" in shown
    assert not has_run(workspace, {"env": ".venv", "canary": str(canary)}), shown
    assert (workspace / "src/project/module.py").read_text() == "edited\n"


@TIERS
def test_packages_of_the_user_that_are_not_there_yet(tmp_path: Path, tier: str) -> None:
    """For an interpreter outside of any environment, whose user works in the home folder."""
    home = tmp_path / "home"
    home.mkdir()
    base = Path(getattr(sys, "_base_executable", sys.executable))
    variables = {"HOME": str(home), "PYTHONPATH": f"{SOURCE}:{sysconfig.get_path('purelib')}"}
    shown = run(
        home,
        f"""
        import site
        folder = site.getusersitepackages()
        assert folder.startswith({str(home)!r}), folder
        done = asyncio.run(say(f"mkdir -p {{folder}} && echo x >{{folder}}/evil.pth && echo made", tier={tier!r}))
        print(done.output, os.path.exists(folder))
        """,
        python=base,
        **variables,
    )
    assert "made" not in shown
    assert shown.endswith("False\n"), shown


@TIERS
def test_nothing_that_holds_it_is_given_with_it(tmp_path: Path, tier: str, environment: Path) -> None:
    """A protected folder, which a command may ask for; through a link, too."""
    workspace = tmp_path / "workspace"
    (workspace / "tools").mkdir(parents=True)
    (tmp_path / "way").symlink_to("workspace")
    shutil.copytree(environment, workspace / "tools/env", symlinks=True)
    shown = run(
        workspace,
        f"""
        settings = dict(tier={tier!r}, protected=["tools"], writable=["tools"])
        command = "touch tools/x; echo x >tools/env/new; mv tools/env y; mv tools z; ls tools"
        done = asyncio.run(say(command, "../way", **settings))
        print(done.output)
        for name in ("tools/env", "tools/env/lib"):
            try:
                asyncio.run(say("true", **settings | {{"writable": [name]}}))
            except SandboxInputError as error:
                print("refused:", error)
        """,
        environment=workspace / "tools/env",
    )
    assert (workspace / "tools/x").exists() is (tier == "full")  # in the other nothing new is made beside it
    assert (workspace / "tools/env/bin/python").exists()
    assert not (workspace / "tools/env/new").exists()
    assert shown.count("refused:") == 2, shown


@TIERS
def test_other_names_of_installed_files_are_not_written_either(tmp_path: Path, tier: str) -> None:
    """An installer may have linked them with its store, which lies in the workspace."""
    workspace = tmp_path / "workspace"
    (workspace / "store/deep").mkdir(parents=True)
    packages = make_environment(workspace / ".venv")
    (packages / "demo-1.0.dist-info").mkdir()
    for name in ("found.pth", "demo-1.0.dist-info/METADATA"):
        (packages / name).touch()
        (workspace / "store/deep" / Path(name).name).hardlink_to(packages / name)
    before = (packages / "found.pth").read_text()
    command = (
        "echo x >>store/deep/found.pth; mv store x; mv store/deep/found.pth y; echo x >>y; touch store/deep/METADATA"
    )
    shown = run(workspace, f"print(asyncio.run(say({command!r}, tier={tier!r})).output)")
    assert (packages / "found.pth").read_text() == before, shown
    assert (workspace / "store/deep/found.pth").samefile(packages / "found.pth")


def test_only_the_setting_opens_it_and_then_no_zygote_is_started(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    make_environment(workspace / ".venv")
    shown = run(
        workspace,
        """
        async def main():
            try:
                await say("true", writable=[".venv"])
            except SandboxInputError as error:
                print("refused:", error)
            for tier in ("full", "container"):
                print((await say("echo x >.venv/new", tier=tier, protected=())).exit_code != 0)
            try:
                await say("true", open_installation=["src"])
            except SandboxInputError as error:
                print("refused:", error)
            await python()
            for tier in ("full", "container"):
                done = await say("echo x >.venv/new && cat .venv/new", tier=tier, open_installation=[".venv"])
                print(done.output)
            try:
                await python()
            except SandboxUnavailable as error:
                print("unavailable:", error)
        asyncio.run(main())
        """,
    )
    assert "'.venv' is part of what ferrule itself runs from, which no command may write" in shown
    assert shown.count("True\n") == 2
    assert "ferrule doesn't run from there" in shown
    assert shown.count("x\n") == 2
    assert f"commands can write {workspace}/.venv" in shown
    assert "since ShellSandbox(open_installation=['.venv']) allowed it in this process" in shown


@pytest.mark.parametrize("below", ["", "lib", "lib/{packages}"])
def test_a_workspace_within_it_is_refused_by_name(tmp_path: Path, below: str) -> None:
    packages = make_environment(tmp_path / "env")
    place = below.format(packages=f"{packages.parent.name}/site-packages")
    shown = run(
        tmp_path,
        f"""
        workspace = str(Path("env", {place!r}).resolve())
        for mode in ("workspace-write", "full", "read-only"):
            try:
                done = asyncio.run(say("mkdir -p bin lib; touch new bin/new lib/new; echo ran", workspace, mode=mode))
                print(mode, done.output[-4:], *(Path(workspace, name, "new").exists() for name in ("bin", "lib")))
            except SandboxUnavailable as error:
                print(error)
        """,
        environment=tmp_path / "env",
    )
    assert "read-only ran\n False False" in shown
    if below:
        assert shown.count(f"is in {tmp_path}/env/lib, which ferrule itself runs from") == 2
    else:  # a project that was made an environment: beside what Python looks into it can be written
        assert "workspace-write ran\n False False" in shown
        assert "full ran\n False False" in shown
        assert (tmp_path / "env/new").exists()


async def test_a_workspace_within_ferrule_s_package_is_refused() -> None:
    async with ShellSandbox(SOURCE / "ferrule/tools", mode="read-only") as shell:
        assert (await shell.run("echo ran")).output == "ran\n"
    for tier in ("full", "container"):
        with pytest.raises(SandboxUnavailable, match="which ferrule itself runs from"):
            await ShellSandbox(SOURCE / "ferrule/tools", tier=tier).open()


@pytest.mark.slow
@TIERS
def test_installing_a_package_there_says_why_it_fails_and_elsewhere_passes(tmp_path: Path, tier: str) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "packages").mkdir(parents=True)
    make_environment(workspace / ".venv")
    (workspace / "demo-1.0-py3-none-any.whl").write_bytes(wheel())
    install = "-m pip --disable-pip-version-check install -q --no-index ./demo-1.0-py3-none-any.whl"
    shown = run(
        workspace,
        f"""
        done = asyncio.run(say(".venv/bin/python {install}", tier={tier!r}))
        assert done.exit_code, done
        print("hint:", done.hint)
        done = asyncio.run(say("false", tier={tier!r}))
        assert not done.hint
        own = "{sys.executable} -m venv --without-pip own && {sys.executable} {install} --prefix own && ls own/lib/*/*"
        print(asyncio.run(say(own, tier="full", readable=[{sys.prefix!r}, {sys.base_prefix!r}])).output)
        """,
    )
    assert f"hint: {workspace}/.venv can't be changed by commands, since ferrule itself runs from there" in shown
    assert "demo.py" in shown


def test_a_zygote_runs_nothing_that_lies_among_the_packages(tmp_path: Path) -> None:
    """Neither what `.pth` files say, nor modules beside ferrule's own package."""
    packages = make_environment(tmp_path / "env", tmp_path / "beside")
    (tmp_path / "beside").mkdir()
    shutil.copytree(SOURCE / "ferrule", tmp_path / "beside/ferrule", ignore=shutil.ignore_patterns("__pycache__"))
    (packages / "found.pth").write_text(f"{tmp_path}/beside\n" + (packages / "found.pth").read_text())
    count = f"with open({str(tmp_path / 'count')!r}, 'a') as file: file.write('x')\n"
    (packages / "evil.pth").write_text(f"import os; exec({count!r})\n")
    for name in ("json", "ctypes", "struct", "selectors"):
        (tmp_path / f"beside/{name}.py").write_text(count + f"raise ImportError({name!r})\n")
    shown = run(
        tmp_path,
        """
        import ferrule
        print(ferrule.__file__, asyncio.run(python("import sys; (sys.prefix, exit, help) and 7 * 6")))
        for tier in ("full", "container"):
            print(asyncio.run(say("echo ran", tier=tier)).output)
        from ferrule.sandbox.checks.profiles import AT_ONCE, check  # longer code is read by a process of its own
        print([finding.name for finding in check("import socket\\n" + "x = 1\\n" * AT_ONCE)])
        """,
        environment=tmp_path / "env",
    )
    assert shown == f"{tmp_path}/beside/ferrule/__init__.py 42\nran\n\nran\n\n['socket']\n"
    counted = (tmp_path / "count").read_text()
    subprocess.run([str(tmp_path / "env/bin/python"), "-c", ""], check=True)
    assert (tmp_path / "count").read_text() == counted * 2  # as often as the program itself has run it


def test_a_project_installed_for_editing_is_found_where_it_is_shown(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/project.py").write_text("answer = 42\n")
    make_environment(tmp_path / "env", tmp_path / "src")
    shown = run(
        tmp_path,
        """
        async def main():
            for readable in ([], ["src"]):
                async with PythonSandbox(packages=(), readable=readable) as sandbox:
                    run = await sandbox.run("import project\\nproject.answer")
                    print(run.error.kind if run.error else run.value)
        asyncio.run(main())
        """,
        environment=tmp_path / "env",
    )
    assert shown == "exception\n42\n"


def test_what_it_is_made_of() -> None:
    installation = Installation.find("/nowhere-in-particular")
    assert any(Path(sys.executable).is_relative_to(place) for place in installation.paths)
    assert any((SOURCE / "ferrule").is_relative_to(place) for place in installation.paths)
    assert not {"/", "/usr", "/usr/local"}.intersection(installation.paths)


async def test_a_setting_that_opens_nothing_is_refused(tmp_path: Path) -> None:
    for wrong in (["src"], "src"):
        with pytest.raises(SandboxInputError, match=r"open_installation|doesn't run from there"):
            await ShellSandbox(tmp_path, open_installation=wrong).open()
