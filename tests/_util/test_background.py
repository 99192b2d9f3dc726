"""The one background loop of a process."""

import asyncio
import os
import signal
import threading

import pytest

from ferrule._util.background import BackgroundWork, run_synchronously, submit_to_background


async def name_of_thread() -> str:
    return threading.current_thread().name


def test_work_of_several_loops_meets_on_one() -> None:
    async def elsewhere() -> str:
        return await asyncio.wrap_future(submit_to_background(name_of_thread()))

    assert asyncio.run(elsewhere()) == asyncio.run(elsewhere()) == run_synchronously(name_of_thread())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of every fork beside threads
def test_a_forked_process_gets_a_loop_of_its_own() -> None:
    assert run_synchronously(name_of_thread()) == "ferrule-background"
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # not as in the parent, where it ends a test
        signal.alarm(200)
        os._exit(0 if run_synchronously(name_of_thread()) == "ferrule-background" else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("end", [SystemExit("bad"), KeyboardInterrupt()])
def test_an_exit_is_raised_in_the_caller_and_the_loop_lives_on(end: BaseException) -> None:
    async def leave() -> None:
        raise end

    async def leave_in_a_task() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.sleep(60))
            tasks.create_task(leave())

    for work in (leave, leave_in_a_task):
        with pytest.raises(type(end)):
            run_synchronously(work())
        assert run_synchronously(name_of_thread()) == "ferrule-background"


def test_work_that_was_stopped_before_it_started_never_starts() -> None:
    started: list[str] = []

    async def start() -> None:
        started.append("started")

    work = BackgroundWork(start())
    work.stop()
    with pytest.raises(asyncio.CancelledError):
        work.result()
    run_synchronously(name_of_thread())
    assert not started


def test_an_interruption_waits_for_the_end_of_what_it_cancels() -> None:
    ended: list[str] = []

    async def work() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            ended.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        run_synchronously(work())
    assert ended == ["cleaned up"]
