"""A Dask cluster whose parts a test can take away."""

from __future__ import annotations

import pytest
from dask_machines import Machines


@pytest.fixture
def machines(tmp_path):
    """A scheduler and three workers."""
    pytest.importorskip("distributed", reason="there is no distributed: it is of the extra `cluster`")
    (tmp_path / "machines").mkdir()
    made = Machines(tmp_path / "machines")
    try:
        for _ in range(3):
            made.start_worker()
        made.wait_for_workers()
        yield made
    finally:
        made.end()
