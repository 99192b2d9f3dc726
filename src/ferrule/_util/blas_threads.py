"""One thread for numpy's linear algebra, where the process is ferrule's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@contextmanager
def limit_blas_threads() -> Iterator[None]:
    """Have numpy, if it is imported within the block, use one thread, unless the environment says otherwise.

    OpenBLAS starts its threads when it is loaded, and each spins while it waits: for the small matrices of a small
    model that costs more than it saves. The environment is restored at the end, so child processes don't inherit it.
    """
    added = [] if "OMP_NUM_THREADS" in os.environ else [name for name in _VARIABLES if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
