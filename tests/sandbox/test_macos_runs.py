"""Fresh processes for the seatbelt tier, run here under a stand-in that contains nothing; and the refusal to be so."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from contained import SOURCE
from seatbelt import stand_in

from ferrule.cli.sandbox_doctor import format_layers
from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.containment import RunLimits
from ferrule.sandbox.doctor import detect_layers_of, try_canaries
from ferrule.sandbox.macos.probes import PROBES
from ferrule.sandbox.macos.python_runs import InterpreterPaths, find_interpreter_paths
from ferrule.sandbox.macos.selftest import try_canaries as results_under
from ferrule.sandbox.python import PythonSandbox
from ferrule.sandbox.python.parent.child_process import ChildNotStarted, ZygoteLost
from ferrule.sandbox.python.parent.execute import execute_once
from ferrule.sandbox.python.parent.request import encode_request
from ferrule.sandbox.python.parent.seatbelt import SeatbeltStarter
from ferrule.sandbox.python.parent.zygote_pool import ZygotePool, ZygoteSettings
from ferrule.sandbox.python.parent.zygote_process import find_package_paths
from ferrule.sandbox.python.result import PythonResult
from ferrule.sandbox.shell import ShellSandbox
from ferrule.sandbox.tiers import PROMISES, Tier

MB = 1024 * 1024
# What the kernel decides about, and what a fresh process has or hasn't, whether or not there is a profile.
_STOPPED_ANYWHERE = {"exceed_limits", "read_secrets", "use_inherited_descriptors", "use_own_folder"}
_STRIPPED = Path(__file__).with_name("without_linux.py")


class Runs:
    """Children of a launcher, below the canaries that would keep it from starting here."""

    def __init__(self, tool: Path, folder: Path) -> None:
        self.launcher, self.folder = SeatbeltStarter(tool), folder
        self.launcher.configure(find_interpreter_paths(()), folder, find_package_paths(), [])

    async def run(
        self, code: str, inputs: dict[str, Any] | None = None, *, seconds: float = 20, **limits: int
    ) -> PythonResult:
        child = self.launcher.spawn(asdict(RunLimits(**limits)), MB)
        with ExitStack() as failing:
            failing.callback(child.close)
            await child.wait_until_confined()
            child.begin()
            failing.pop_all()
        return await execute_once(child, encode_request(code, inputs, "<run>"), seconds)


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    return stand_in(tmp_path)


@pytest.fixture
async def runs(tool: Path, tmp_path: Path) -> AsyncIterator[Runs]:
    folder = tmp_path / "runs"
    folder.mkdir()
    runs = Runs(tool, folder)
    yield runs
    runs.launcher.close()
    await runs.launcher.wait_until_gone()
    assert list(folder.iterdir()) == []


async def test_a_run_gives_back_what_any_other_gives(runs: Runs) -> None:
    code = "import os\nprint('hello')\nopen('out/a.txt', 'w').write(name)\n[len(open('in.csv').read()), os.getcwd()]"
    run = await runs.run(f"import os; os.mkdir('out')\n{code}", {"name": "Ann", "in.csv": b"1,2"})
    assert run.error is None
    assert run.value[0] == 3
    assert Path(run.value[1]).parent == runs.folder
    assert (run.stdout, run.files["out/a.txt"]) == ("hello\n", b"Ann")
    failed = await runs.run("def half(x):\n    return x / 0\nhalf(1)")
    assert failed.error is not None
    assert (failed.error.kind, failed.error.line) == ("exception", 2)


async def test_each_run_is_a_process_of_its_own_with_nothing_of_ours(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "x")
    code = "import os, random\n[os.getpid(), os.getsid(0), os.getpgid(0), dict(os.environ), os.listdir('.'), {}]"
    fds = "len(os.listdir('/proc/self/fd'))" if sys.platform == "linux" else "0"
    first, second = (await runs.run(code.replace("{}", fds), seconds=20)).value, (await runs.run(code)).value
    assert first[0] != second[0]
    assert first[0] == first[1] == first[2] != os.getpid()
    assert "SOME_TOKEN" not in first[3]
    assert first[3]["HOME"].startswith(str(runs.folder))
    assert first[4] == [".private"]
    # Standard input and output, the channel, and what lists the folder.
    assert first[5] <= 5


@pytest.mark.parametrize(
    ("code", "limits", "kind"),
    [
        ("while True: pass", {"seconds": 0.3}, "timeout"),
        ("print('x' * 2**22)", {}, "output"),
        ("import os; os._exit(3)", {}, "killed"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", {}, "killed"),
        ("while True: pass", {"cpu": 1}, "killed"),
        ("open('x', 'wb').write(bytes(2**20))", {"file_size": 2**18}, "exception"),
        ("[open('/dev/null') for _ in range(200)]", {}, "exception"),
        ("import time\nx = bytes(2**28)\nx = [bytearray(x)]\ntime.sleep(10)", {"memory": 64 * MB}, "killed"),
    ],
)
async def test_what_a_run_may_use_is_limited(runs: Runs, code: str, limits: dict[str, Any], kind: str) -> None:
    if "memory" in limits and not Path("/bin/ps").exists():
        pytest.skip("ps is missing")
    run = await runs.run(code, **limits)
    assert run.error is not None
    assert run.error.kind == kind


async def test_a_forked_copy_ends_with_its_run(runs: Runs, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    limits = "import resource, os, time\n"
    copy = f"if os.fork() == 0:\n    while True:\n        open({str(seen)!r}, 'w').close(); time.sleep(0.01)\n"
    if os.getuid() != 0:
        # The limit on processes holds for everybody but root, also without a profile.
        assert (await runs.run(limits + copy)).error is not None
        return
    await runs.run(limits + copy + "time.sleep(0.3)")
    seen.unlink(missing_ok=True)
    time.sleep(0.2)
    assert not seen.exists()


async def test_a_tool_that_starts_nothing_is_told(tmp_path: Path) -> None:
    tool = tmp_path / "sandbox-exec"
    tool.write_text("#!/bin/sh\nexit 65\n")
    tool.chmod(0o755)
    runs = Runs(tool, tmp_path)
    with pytest.raises(ChildNotStarted, match="status 65 before it was contained"):
        await runs.run("1")
    runs.launcher.close()
    with pytest.raises(ZygoteLost):
        runs.launcher.spawn(asdict(RunLimits()), MB)
    await runs.launcher.wait_until_gone()
    with pytest.raises(SandboxUnavailable, match="started nothing: it ended with status 65"):
        results_under(tool, find_interpreter_paths(()), {})


def test_uncontained_the_probes_get_through(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = {
        result.name: result.reached for result in results_under(tool, find_interpreter_paths(()), {"PATH": os.defpath})
    }
    assert results.keys() == {probe.__name__ for probe in PROBES}
    assert {name for name, reached in results.items() if reached is None} == _STOPPED_ANYWHERE
    # The last of them has become another program, and so nobody was left to say so.
    assert results["become_program"] == "something: no answer"
    secrets = {
        result.name: result.reached for result in results_under(tool, find_interpreter_paths(()), {"MY_TOKEN": "x"})
    }
    assert secrets["read_secrets"] == "MY_TOKEN"


async def test_a_sandbox_refuses_to_start_where_nothing_is_contained(tool: Path, tmp_path: Path) -> None:
    pool = ZygotePool(ZygoteSettings((), (), Tier.SEATBELT, MB, seatbelt=tool), RunLimits())
    with pytest.raises(SandboxUnavailable, match=r"seatbelt tier doesn't hold.*read_outside reached.*become_program"):
        await pool.acquire_child(RunLimits())
    await pool.aclose()


async def test_without_the_program_nothing_runs() -> None:
    with pytest.raises(SandboxUnavailable, match="needs /usr/bin/sandbox-exec, which isn't there"):
        await PythonSandbox(tier="seatbelt").run("1")
    with pytest.raises(SandboxUnavailable, match="needs macOS"):
        await ShellSandbox(".", tier="seatbelt").run("true")
    with pytest.raises(SandboxUnavailable, match="needs /usr/bin/sandbox-exec"):
        try_canaries(Tier.SEATBELT)


async def test_there_are_no_sessions() -> None:
    with pytest.raises(SandboxUnavailable, match="no sessions"):
        await PythonSandbox(tier="seatbelt").session()
    assert any("sessions" in line for line in PROMISES[Tier.SEATBELT].lacks)


def test_the_tier_goes_by_the_platform(tool: Path, tmp_path: Path) -> None:
    found = detect_layers_of("darwin", tool)
    assert (found.tier, found.seatbelt, found.landlock, found.shell_tier) == (Tier.SEATBELT, tool, 0, Tier.SEATBELT)
    assert f"seatbelt: {tool} (untested: no Mac has ever run this; the canaries" in "\n".join(format_layers(found))
    without = detect_layers_of("darwin", tmp_path / "nothing")
    assert not [line for line in format_layers(without) if line.startswith("seatbelt")]
    assert (without.tier, without.seatbelt) == (Tier.NONE, None)
    assert "nothing, which isn't there" in without.missing[-1]
    windows = detect_layers_of("win32", tool)
    assert (windows.tier, windows.seatbelt, windows.missing[0].partition(":")[0]) == (Tier.NONE, None, "win32")


def test_what_is_shown_is_real_and_never_everything(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    shown: InterpreterPaths = find_interpreter_paths([link / "nothing", link])
    assert str(tmp_path.resolve()) in shown.readable
    assert str(link) in shown.links
    assert all(os.path.realpath(path) == path for path in (*shown.readable, *shown.listed))
    with pytest.raises(ValueError, match="whole root"):
        find_interpreter_paths([Path("/")])


def test_nothing_on_the_way_is_linux_s_own() -> None:
    done = subprocess.run([sys.executable, str(_STRIPPED), SOURCE], capture_output=True, text=True, check=False)
    assert (done.stdout.splitlines()[-1:], done.stderr) == (["12 True ran the seatbelt tier doesn't hold"], "")
