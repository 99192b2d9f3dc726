"""What several tests of the analyst share."""

import asyncio
from pathlib import Path

import pytest

from ferrule.analysis.functions import FunctionRepository
from function_cache import find_shared_cache, function_cache

__all__ = ["function_cache"]


@pytest.fixture(autouse=True)
def _shared_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test write to the cache of whoever runs it, and none build what another one has built."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(find_shared_cache(tmp_path_factory)))


@pytest.fixture
def repository(function_cache: Path) -> FunctionRepository:
    """The function repository, from its cache."""
    return asyncio.run(FunctionRepository.open(folder=function_cache / "ferrule" / "functions"))
