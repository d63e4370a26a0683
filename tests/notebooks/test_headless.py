"""Each notebook runs without a browser, over two nights and over the first one alone, and only reads."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.lake import Lake
from pipeline.lake.database import open_published
from pipeline.report.read import Reader
from pipeline.report.scope import Scope

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.py"))
# What a night without one before it cannot show, and the words that say why.
OF_THE_FIRST_NIGHT = {
    "booking_window": [
        "Not known yet: the answer comes from stays that have begun",
        "needs two nights",
        "two answers for the same cell",
        "No room has been picked up yet",
    ],
    "offer_explorer": ["Lead time: drag over a range"],
    "parity_explorer": ["are dearer than in"],
    "price_trends": ["0 changes of"],
    "promotion_honesty": ["(not enough history)"],
}


def ran(notebook, lake, monkeypatch):
    """Return all that a notebook shows, as text, and the names that it leaves."""
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))
    spec = importlib.util.spec_from_file_location(notebook.stem, notebook)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    outputs, names = module.app.run()
    return "\n".join(_text(output) for output in outputs), names


def _text(output) -> str:
    return output.text if hasattr(output, "text") else "" if output is None else str(output)


def _hash(lake):
    return hashlib.sha256(lake.published_file.read_bytes()).hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs_and_writes_nothing(notebook, nights, monkeypatch):
    before = _hash(nights.both), sorted(nights.both.published_file.parent.iterdir())
    shown, names = ran(notebook, nights.both, monkeypatch)
    assert "<h1" in shown
    assert names["ask"]("SELECT readonly FROM duckdb_databases() WHERE database_name = 'nightaudit'").item()
    assert (_hash(nights.both), sorted(nights.both.published_file.parent.iterdir())) == before


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_on_the_first_night_it_says_what_is_not_known_yet(notebook, nights, monkeypatch):
    shown, _ = ran(notebook, nights.first, monkeypatch)
    for words in OF_THE_FIRST_NIGHT[notebook.stem]:
        assert words in shown


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_before_the_first_night_it_says_what_to_do(notebook, tmp_path, monkeypatch):
    shown, _ = ran(notebook, Lake(str(tmp_path / "none")), monkeypatch)
    assert "Nothing is published yet" in shown
    assert "nightaudit nightly" in shown


def test_the_notebooks_are_as_marimo_wants_them():
    checked = subprocess.run(
        [sys.executable, "-m", "marimo", "check", "--strict", *NOTEBOOKS], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.slow
def test_the_parity_explorer_counts_what_the_parity_page_counts_and_lists_the_furthest_of_both_directions(
    nights, monkeypatch
):
    explorer = next(each for each in NOTEBOOKS if each.stem == "parity_explorer")
    shown, names = ran(explorer, nights.both, monkeypatch)
    with open_published(nights.both.published_file) as session:
        total = Reader(session, Scope()).total("parity_total")
    counted = dict(names["counted"].select("verdict", "offers").group_by("verdict").sum().iter_rows())
    assert {verdict: counted.get(verdict, 0) for verdict in ("win", "meet", "lose")} == {
        verdict: total[verdict] for verdict in ("win", "meet", "lose")
    }
    assert f"Of {total['pairs']:,} offers, {total['lose']:,} are dearer" in shown
    gaps = names["differing"]["gap_pct"].abs()
    assert gaps.is_sorted(descending=True)
    assert set(names["differing"]["verdict"]) == {"win", "lose"}
