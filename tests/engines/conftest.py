"""One small engine's folder for all tests that need no reference model."""

from __future__ import annotations

import pytest
from engine_checkpoints import write_checkpoint


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"))
