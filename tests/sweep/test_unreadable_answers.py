"""An unreadable answer, or an error with status 200, is requested again in halves until one property is isolated."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import date

import pytest
from small_sweep import rows, small_spec, sweep_once

from pipeline.domain.errors import NightauditError
from pipeline.domain.shards import segments
from pipeline.lake import Lake
from pipeline.lake.raw import landed, read_manifest
from pipeline.normalise import segment as normalising
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.sandbox.world.identifiers import property_ids

IDS = property_ids(3, 40)
BAD = IDS[7]


def sweep(lake, sandbox, folder):
    return sweep_once(lake, sandbox.base_url, sandbox, small_spec(folder, days=5, markets=["GB"]), IDS)


@pytest.fixture
def sandbox():
    with SandboxProcess(seed=3, properties=40, today=date(2030, 1, 1), missing_share=0) as process:
        yield process


def test_an_unreadable_property_costs_itself_and_not_its_neighbours(lake, sandbox, tmp_path):
    sandbox.control("faults", {"unreadable_property_ids": [BAD]})
    sweep_id = sweep(lake, sandbox, tmp_path)
    cells = rows(lake, "cell", sweep_id)
    assert len(cells) == 5 * len(IDS)
    assert {cell["property_id"] for cell in cells if cell["status"] == "failed"} == {BAD}
    outcomes = Counter(search["outcome"] for search in rows(lake, "search", sweep_id))
    assert outcomes["failed"] == 5
    assert outcomes["split"] >= 5
    assert any(name.endswith("-again") for name in landed(lake, sweep_id))


def test_a_passing_fault_leaves_no_failed_cell(lake, sandbox, tmp_path):
    sandbox.control("faults", {"schedule": {"2": "cut_json"}})
    sweep_id = sweep(lake, sandbox, tmp_path)
    assert Counter(cell["status"] for cell in rows(lake, "cell", sweep_id))["failed"] == 0


def test_what_was_asked_again_leaves_no_reject_behind(lake, tmp_path):
    with SandboxProcess(seed=3, properties=40, today=date(2030, 1, 1), missing_share=0) as whole:
        whole.control("faults", {"schedule": {"2": "cut_json"}})
        sweep_id = sweep(lake, whole, tmp_path)
    assert Counter(search["outcome"] for search in rows(lake, "search", sweep_id))["split"] == 1
    # None of the searches has a reject, so none is stored: the night would be blocked otherwise.
    assert sum(search["rejects"] for search in rows(lake, "search", sweep_id)) == 0
    assert rows(lake, "reject", sweep_id) == []


SERVER_ERRORS = [
    "error_200", "nested_error", "capital_error", "long_error", "late_error", "utf16_error", "error_beside",
    "error_in_property", "empty_object", "null_envelope",
]  # fmt: skip


@pytest.mark.slow
def test_errors_with_status_200_never_turn_an_offer_into_an_absence(tmp_path, sandbox):
    found = []
    for number, faults in enumerate(
        [{}, {"garbage_rate": 0.6, "garbage_kinds": SERVER_ERRORS, "by": "content"}, {"schedule": scheduled()}]
    ):
        sandbox.control("faults", faults)
        lake = Lake(str(tmp_path / f"lake-{number}"))
        cells = rows(lake, "cell", sweep(lake, sandbox, tmp_path))
        assert len(cells) == 5 * len(IDS)
        # What is absent in a batch is without offers where it is asked for alone.
        alone = {"absent": "no_offer"}
        found.append(
            {
                (cell["property_id"], cell["check_in"]): (alone.get(cell["status"], cell["status"]), cell["offers"])
                for cell in cells
            }
        )
    clean, often, passing = found
    assert passing == clean
    assert {cell: said for cell, said in often.items() if said != clean[cell] and said[0] != "failed"} == {}
    assert Counter(status for status, _ in often.values())["offered"] > 0


def scheduled():
    """Each error once, with an answer between two of them."""
    return {str(2 * number + 1): kind for number, kind in enumerate(SERVER_ERRORS)}


def test_running_it_again_asks_nothing_and_changes_nothing(lake, sandbox, tmp_path):
    sandbox.control("faults", {"unreadable_property_ids": [BAD]})
    sweep_id = sweep(lake, sandbox, tmp_path)
    asked = sandbox.control("served")["requests"]
    before = {path: path.read_bytes() for path in lake.root.rglob("*.parquet")}
    sweep(lake, sandbox, tmp_path)
    assert sandbox.control("served")["requests"] == asked
    assert {path: path.read_bytes() for path in lake.root.rglob("*.parquet")} == before
    assert sweep_id


@pytest.mark.parametrize("harm", ["lost", "cut"])
def test_a_lost_file_of_a_segment_is_made_again(lake, sandbox, tmp_path, monkeypatch, harm):
    def stop(*_):
        raise NightauditError("before the tables are loaded")

    # The package has a function of the module's name.
    monkeypatch.setattr(sys.modules["pipeline.sweep.under_way"], "load_partitions", stop)
    with pytest.raises(NightauditError, match="before the tables"):
        sweep(lake, sandbox, tmp_path)
    monkeypatch.undo()
    (file,) = (lake.table_root("offer") / lake.sweep_ids()[0]).glob("*.parquet")
    whole = file.read_bytes()
    file.unlink()
    if harm == "cut":
        file.touch()
    sweep(lake, sandbox, tmp_path)
    assert file.read_bytes() == whole


def test_what_a_segment_held_is_read_back_from_its_last_file(lake, sandbox, tmp_path):
    sweep_id = sweep(lake, sandbox, tmp_path)
    (partition,) = read_manifest(lake, sweep_id).partitions
    (only,) = segments(partition)
    held = normalising.done(lake, sweep_id, only)
    assert held is not None
    assert held.offers == len(rows(lake, "offer", sweep_id))
    assert sum(held.cells_by_status.values()) == 5 * len(IDS)
