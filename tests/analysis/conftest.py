"""What several tests of the analyst share."""

import asyncio
from pathlib import Path

import pytest

from ferrule.analysis.functions.repository import FunctionRepository
from function_cache import function_cache

__all__ = ["function_cache"]


@pytest.fixture
def repository(function_cache: Path) -> FunctionRepository:
    """The function repository, from its cache."""
    return asyncio.run(FunctionRepository.open(folder=function_cache / "ferrule" / "functions"))
