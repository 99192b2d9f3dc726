"""What all tests share: Hypothesis's settings, the time that a test has, and the account of what was skipped.

At the end of a run each reason for a skip is listed with the tests that it kept from running. With
FERRULE_STRICT_SKIPS=1 a reason that `skips.txt` doesn't allow fails the run.
"""

import asyncio
import atexit
import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from types import CoroutineType

import pytest
from hypothesis import settings

# The tests fill all processors themselves; the threads of torch and numpy would wait for each other, spinning. Whoever
# imports these, in this process or one that it starts, does so after this line.
os.environ["OMP_NUM_THREADS"] = "1"

# No test, and no command that one starts, finds the settings or saved keys of whoever runs it.
os.environ["XDG_CONFIG_HOME"] = "/nonexistent"
os.environ.pop("FERRULE_CONFIG", None)

settings.register_profile("ferrule", deadline=None, max_examples=50, derandomize="CI" in os.environ)
settings.load_profile("ferrule")

# A run in the background of a shell script ignores Ctrl-C, and so would every command that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ALLOWED = Path(__file__).with_name("skips.txt")
SLOW = 2400
"""Seconds after which a slow test ends; `pyproject.toml` has those of all others."""


@pytest.fixture(autouse=True)
def _own_gateways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test find the gateway of another: the system gives a port out again once its server has gone."""
    if gateway := sys.modules.get("ferrule.models.gateway.gateway"):
        monkeypatch.setattr(gateway, "_gateways", {})
        monkeypatch.setattr(gateway, "_configured", {})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give slow tests their time."""
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(SLOW))


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through all modules and tests again and again."""
    gc.freeze()
    atexit.register(gc.unfreeze)  # some libraries print what is left at the end


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Say of an asynchronous test that ran out of time where it waited: the traceback ends in the event loop."""
    try:
        yield
    except pytest.fail.Exception as error:
        if "pytest-timeout" in str(error) and item.get_closest_marker("asyncio"):
            item.add_report_section("call", "tasks", "\n".join(_waiting()))
        raise


def _waiting() -> Iterator[str]:
    """Each task of this thread's event loop, with the lines at which it waits."""
    for task in asyncio.all_tasks(asyncio.get_event_loop()):
        yield task.get_name()
        awaited: object = task.get_coro()
        while isinstance(awaited, CoroutineType) and awaited.cr_frame is not None:
            yield f"    {awaited.cr_code.co_filename}:{awaited.cr_frame.f_lineno}: in {awaited.__qualname__}"
            awaited = awaited.cr_await


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List by name what was skipped, by reason."""
    skipped = _skipped(terminalreporter)
    if not skipped:
        return
    refused = _refused(skipped)
    terminalreporter.section("what a missing part skips")
    for reason, names in sorted(skipped.items()):
        mark = "  (not on tests/skips.txt)" if reason in refused else ""
        terminalreporter.line(f"{reason}: {names.total()}{mark}")
        for name, times in sorted(names.items()):
            terminalreporter.line(f"    {name}" + (f" ({times} cases)" if times > 1 else ""))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run whose skips are not all allowed, where that is asked for."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("FERRULE_STRICT_SKIPS") == "1" and reporter is not None and _refused(_skipped(reporter)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _skipped(reporter: pytest.TerminalReporter) -> dict[str, Counter[str]]:
    """By reason: the tests' names without their parameters, and how many cases of each were skipped."""
    found: dict[str, Counter[str]] = {}
    for report in reporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        names = found.setdefault(reason.removeprefix("Skipped: "), Counter())
        names[report.nodeid.partition("[")[0]] += 1
    return found


def _refused(reasons: dict[str, Counter[str]]) -> list[str]:
    allowed = list(_patterns())
    return [reason for reason in reasons if not any(fnmatchcase(reason, pattern) for pattern in allowed)]


def _patterns() -> Iterator[str]:
    for line in ALLOWED.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.strip()
