"""The lake, made once per run, what follows from its raw answers, and what its published file says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import flags
import nights_made
import raw_zone
from history import replayed
from published import Published
from relations_of_pairs import Rates


@pytest.fixture(scope="session")
def lake(once_a_run):
    return Path(once_a_run("oracle", nights_made.made))


@pytest.fixture(scope="session")
def sweeps(lake):
    return raw_zone.sweeps(lake)


@pytest.fixture(scope="session")
def history(sweeps):
    return replayed(sweeps)


@pytest.fixture(scope="session")
def published(lake, sweeps):
    return Published(lake / "published" / "nightaudit.duckdb", sweeps)


@pytest.fixture(scope="session")
def flagged(lake, sweeps, published):
    rates = Rates((lake.parent / "rates.csv").read_text())
    ranks = {offer: key for key, offer in published.offers.items()}
    return flags.flags(sweeps, nights_made.REFERENCE_MARKET, rates, ranks)
