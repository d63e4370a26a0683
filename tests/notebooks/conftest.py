"""Two nights of the sandbox, swept once a session."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from sandbox_nights import swept


@pytest.fixture(scope="session")
def nights(tmp_path_factory):
    return swept(tmp_path_factory.mktemp("nights"))
