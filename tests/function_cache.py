"""A function repository that is built once in a run of the tests, as a fixture for a `conftest.py`."""

import asyncio
import fcntl
import os
from pathlib import Path

import pytest

from ferrule.analysis.functions import FunctionRepository


def find_shared_cache(factory: pytest.TempPathFactory) -> Path:
    """A folder for XDG_CACHE_HOME, the same for all processes of a run: what one of them builds, the others find."""
    base = factory.getbasetemp()
    # Each of xdist's workers has a folder of its own inside that of the run.
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared_cache"


@pytest.fixture(scope="session")
def function_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That folder, once the function repository is built there, which takes seconds."""
    folder = find_shared_cache(tmp_path_factory)
    folder.mkdir(exist_ok=True)

    async def build() -> None:
        await (await FunctionRepository.open(folder=folder / "ferrule" / "functions")).aclose()

    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        asyncio.run(build())
    return folder
