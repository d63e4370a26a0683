"""Golden tests of the SQL: `<schema>/<relation>/<case>.yaml` holds given tables and the rows expected.

What a case does not name is usual: see `session` and `nights.filled`. Only the columns that it names are compared.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from session import Golden


@pytest.fixture(scope="session")
def _session():
    made = Golden()
    yield made
    made.session.close()


@pytest.fixture
def golden(_session):
    yield _session
    _session.empty()
