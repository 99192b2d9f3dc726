"""A function repository that is built once in a run of the tests, as a fixture for a `conftest.py`."""

import asyncio
from pathlib import Path

import pytest

from ferrule.analysis.functions.repository import FunctionRepository
from shared_builds import built_once


@pytest.fixture(scope="session")
def function_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for XDG_CACHE_HOME in which the function repository is built, which takes seconds."""

    async def build(folder: Path) -> None:
        await (await FunctionRepository.open(folder=folder / "ferrule" / "functions")).aclose()

    return built_once(tmp_path_factory, "function_cache", lambda folder: asyncio.run(build(folder)))
