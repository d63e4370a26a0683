"""What the parts of the pipeline's middle share: an empty lake, and modules of helpers beside this file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pipeline.lake import Lake

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))
