"""The facts of the supplier's document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def facts():
    return json.loads(Path(__file__).with_name("facts.json").read_text(encoding="utf-8"))
