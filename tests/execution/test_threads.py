"""Threads for blocking functions: one each, used again, and none of a parent's after a fork."""

from __future__ import annotations

import os
import threading
import weakref

import pytest

from ferrule.execution.threads import run_in_worker

_SECONDS = 20


def test_more_functions_than_may_idle_run_at_the_same_time() -> None:
    together = threading.Barrier(100)
    done = threading.Semaphore(0)

    def work() -> None:
        together.wait(_SECONDS)
        done.release()

    for _ in range(3):
        for _ in range(100):
            run_in_worker(work)
        assert all(done.acquire(timeout=_SECONDS) for _ in range(100))


def test_callers_in_many_threads_each_have_their_function_run_once() -> None:
    ran: list[tuple[int, int]] = []
    done = threading.Semaphore(0)

    def give(caller: int) -> None:
        for number in range(200):
            answered = threading.Event()

            def work(what: tuple[int, int] = (caller, number), answered: threading.Event = answered) -> None:
                ran.append(what)
                answered.set()

            run_in_worker(work)
            assert answered.wait(_SECONDS)
        done.release()

    for caller in range(4):
        threading.Thread(target=give, args=(caller,), daemon=True).start()
    assert all(done.acquire(timeout=_SECONDS) for _ in range(4))
    assert sorted(ran) == [(caller, number) for caller in range(4) for number in range(200)]


def test_an_idle_thread_holds_nothing_of_what_it_ran() -> None:
    class Held:
        """Something that can be seen to go."""

    def run(held: Held) -> None:
        done = threading.Event()

        def work(_held: Held = held) -> None:
            done.set()

        run_in_worker(work)
        assert done.wait(_SECONDS)

    for _ in range(2):  # in a new thread, and in one that was idle
        held = Held()
        run(held)
        gone = threading.Event()
        weakref.finalize(held, gone.set)
        del held
        assert gone.wait(_SECONDS)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_workers_of_its_own() -> None:
    done = threading.Event()
    run_in_worker(done.set)
    assert done.wait(_SECONDS)
    child = os.fork()
    if not child:
        answers = [threading.Event(), threading.Event()]
        for answer in answers:
            run_in_worker(answer.set)
            answer.wait(_SECONDS)
        os._exit(0 if all(answer.is_set() for answer in answers) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    again = threading.Event()
    run_in_worker(again.set)
    assert again.wait(_SECONDS)
