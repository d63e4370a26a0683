from __future__ import annotations

import pytest
from fake_supplier import Collecting, FakeSupplier


@pytest.fixture
def collecting(lake):
    return Collecting(lake)


@pytest.fixture
def supplier():
    return FakeSupplier
