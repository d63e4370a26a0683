"""Two nights of the sandbox, swept once a run; nothing is written to them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from sandbox_nights import swept


@pytest.fixture(scope="session")
def nights(once_a_run):
    return once_a_run("nights-for-notebooks", swept)
