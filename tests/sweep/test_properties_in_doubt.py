"""A property on sale whose id goes missing is asked for until it is alone; one that never had an id costs nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import pytest
from small_sweep import rows
from spoiler import Spoiler, as_it_is

from pipeline.lake import Lake
from pipeline.night import night_sweep
from pipeline.night.night import Night
from pipeline.night.supplier import supplier_name
from pipeline.publish import publish
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.sandbox.world.identifiers import property_ids
from pipeline.settings import Settings
from pipeline.spec import parse_spec
from pipeline.sweep import begin

NOW = datetime(2030, 1, 1, 2, tzinfo=UTC)
IDS = property_ids(3, 40)
SEARCHES = 3
SPEC = """
[properties]
ids = [1]
[stays]
nights = [2]
anchor = "calendar"
check_in = [2030-02-04, 2030-02-11, 2030-02-18]
[ask]
markets = ["GB"]
parties = ["2"]
currencies = ["EUR"]
"""


@pytest.fixture(scope="module")
def supplier():
    with (
        SandboxProcess(seed=3, properties=40, today=NOW.date(), opened=NOW.date(), missing_share=0) as sandbox,
        Spoiler(sandbox.base_url) as between,
    ):
        yield sandbox, between


class Nights:
    """A lake that is swept and published night after night."""

    def __init__(self, lake: Lake, sandbox: SandboxProcess, supplier: Spoiler) -> None:
        self.lake, self.sandbox, self.supplier, self.number = lake, sandbox, supplier, 0

    def sweep(self, nameless: set[int], *, daily_calls: int | None = None) -> tuple[str, int]:
        """Sweep and publish the next night, in which some properties have no id; return it and its requests."""
        now = NOW + timedelta(days=self.number)
        settings = Settings(
            _env_file=None,
            base_url=self.supplier.base_url,
            client_id=self.sandbox.client_id,
            client_secret=self.sandbox.client_secret,
            requests_per_second=1000,
            workers=1,
            lake=str(self.lake.root),
            daily_calls=daily_calls,
        )
        self.sandbox.control("night", {"night": self.number, "today": now.date().isoformat()})
        self.supplier.spoil = without_id(nameless) if nameless else as_it_is
        before = self.supplier.asked
        spec = parse_spec(SPEC, self.lake.root / "sweep.toml", NOW.date())
        manifest = begin(self.lake, spec, IDS, now=now, supplier=supplier_name(settings), is_simulated=False)
        asyncio.run(night_sweep.collect(Night(settings, self.lake, manifest, clock=lambda: now)))
        publish(self.lake, manifest.sweep_id, now + timedelta(hours=1))
        self.number += 1
        return manifest.sweep_id, self.supplier.asked - before

    def on_sale(self, sweep_id: str) -> dict[tuple[int, date], bool]:
        return {
            (cell["property_id"], cell["check_in"]): cell["status"] == "offered"
            for cell in rows(self.lake, "cell", sweep_id)
        }

    def nameless(self, sweep_id: str) -> int:
        return sum(reject["property_id"] is None for reject in rows(self.lake, "reject", sweep_id))


def without_id(nameless: set[int]) -> Callable[[str, bytes, bytes], bytes]:
    def spoil(_market: str, _request: bytes, answer: bytes) -> bytes:
        said = json.loads(answer)
        for each in said.get("properties") or ():
            if each.get("propertyId") in nameless:
                each["propertyId"] = None
        return json.dumps(said).encode()

    return spoil


@pytest.fixture
def nights(lake, supplier):
    """A lake with one published night in which all have their ids, and a property that was on sale for each stay."""
    made = Nights(lake, *supplier)
    first, requests = made.sweep(set())
    assert requests == SEARCHES
    there = made.on_sale(first)
    return made, next(each for each in IDS if all(there[key] for key in there if key[0] == each))


@pytest.mark.slow
def test_properties_missing_beside_a_part_without_an_id_are_requested_until_each_is_alone(nights):
    made, lost = nights
    sweep_id, requests = made.sweep({lost})
    assert SEARCHES < requests < SEARCHES * 20
    assert all(is_offered for (each, _), is_offered in made.on_sale(sweep_id).items() if each == lost)
    assert made.nameless(sweep_id) == 0
    alone = {search["search_id"] for search in rows(made.lake, "search", sweep_id) if search["properties"] == 1}
    assert alone.issuperset(
        row["search_id"] for row in rows(made.lake, "offer", sweep_id) if row["property_id"] == lost
    )
    cells = made.on_sale(sweep_id)
    assert len(cells) == len(rows(made.lake, "cell", sweep_id)) == SEARCHES * len(IDS)
    # The same night after night: it is found again.
    sweep_id, requests = made.sweep({lost})
    assert requests > SEARCHES
    assert all(is_offered for (each, _), is_offered in made.on_sale(sweep_id).items() if each == lost)


@pytest.mark.slow
def test_where_the_days_calls_may_not_suffice_they_stay_in_doubt(nights):
    made, lost = nights
    sweep_id, requests = made.sweep({lost}, daily_calls=SEARCHES + 1)
    assert requests == SEARCHES
    assert made.nameless(sweep_id) == SEARCHES
    assert not any(is_offered for (each, _), is_offered in made.on_sale(sweep_id).items() if each == lost)


@pytest.mark.slow
def test_what_has_no_id_from_the_first_night_on_costs_no_request(lake, supplier):
    made = Nights(lake, *supplier)
    never = IDS[:3]
    for _ in range(3):
        sweep_id, requests = made.sweep(set(never))
        assert requests <= SEARCHES + 2
        assert made.nameless(sweep_id) >= SEARCHES
