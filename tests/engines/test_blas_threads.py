"""One thread for numpy's linear algebra."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_PROGRAM = """
import os, threading
from ferrule.engines import limit_blas_threads

before = dict(os.environ)
with limit_blas_threads():
    import numpy
    numpy.ones((200, 200)) @ numpy.ones((200, 200))
assert dict(os.environ) == before
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in Linux's /proc")  # noqa: PTH112
@pytest.mark.parametrize(("variable", "threads"), [(None, 1), ("OPENBLAS_NUM_THREADS", 2), ("OMP_NUM_THREADS", 2)])
def test_numpy_has_one_thread_unless_the_environment_says_otherwise(variable, threads):
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    if variable is not None:
        environment[variable] = "2"
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, check=False
    )
    # A machine with one core has one thread whatever is asked.
    assert (done.returncode, done.stdout.strip()) == (0, str(min(threads, os.cpu_count() or 1))), done.stderr
