"""Nights that a real sandbox answers over HTTP: clean ones raise no alarm, and each planted fault is caught."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from audited_nights import failed_checks
from sandbox_settings import settings_asking
from spoiler import Spoiler, as_it_is

from pipeline.audit import Audit
from pipeline.domain.errors import GateBlocked
from pipeline.lake import Lake
from pipeline.night import night_sweep
from pipeline.night.gate import audit_sweep, publish_checked, refuse_blocked
from pipeline.night.night import Night
from pipeline.night.supplier import supplier_name
from pipeline.publish import published_sweeps
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.sandbox.world.identifiers import property_ids
from pipeline.settings import utc_now
from pipeline.spec import parse_spec
from pipeline.sweep import begin

pytestmark = pytest.mark.slow

TODAY = datetime.now(UTC).date()
CHECK_INS = [(TODAY + timedelta(days=60 + 7 * week)).isoformat() for week in range(4)]
PROPERTIES = 60
COLD_NIGHTS = 3
SPEC = f"""
[properties]
ids = [1]
[stays]
nights = [2]
anchor = "calendar"
check_in = [{", ".join(CHECK_INS)}]
[ask]
markets = ["GB", "SE"]
parties = ["2"]
currencies = ["EUR"]
batch = 30
"""
# What the sandbox plants for reports to find: it is reported every night, and is no fault of the night.
PLANTED = {"total_above_pre_promo_total"}
MONEY = ("total", "prePromoTotal", "minSellablePrice")


class Nights:
    """A lake that is swept night after night, through everything that a night goes through."""

    def __init__(self, place, sandbox: SandboxProcess, supplier: Spoiler) -> None:
        self.lake = Lake(str(place / "lake"))
        self.sandbox, self.supplier, self.number = sandbox, supplier, 0
        self.good: dict[bytes, bytes] = {}
        self.settings = settings_asking(
            sandbox,
            base_url=supplier.base_url,
            requests_per_second=1000,
            workers=1,
            lake=str(self.lake.root),
            audit_cold_nights=COLD_NIGHTS,
        )

    def sweep(self, spoil=as_it_is, *, in_lake: Callable[[Lake, str], None] = lambda _lake, _sweep: None) -> Audit:
        """Sweep, load and audit the next night, and publish it if it passes."""
        now = utc_now()
        self.sandbox.control("night", {"night": self.number})
        self.supplier.spoil = spoil
        self.supplier.answers = {}
        self.number += 1
        spec = parse_spec(SPEC, self.lake.root / "sweep.toml", TODAY)
        ids = property_ids(1, PROPERTIES)
        manifest = begin(self.lake, spec, ids, now=now, supplier=supplier_name(self.settings), is_simulated=False)
        asyncio.run(night_sweep.collect(Night(self.settings, self.lake, manifest)))
        in_lake(self.lake, manifest.sweep_id)
        found = audit_sweep(self.settings, self.lake, manifest.sweep_id, now)
        if found.is_passed:
            publish_checked(self.lake, manifest.sweep_id, now)
            self.good = self.supplier.answers
        return found


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """A lake of clean, published nights, just enough to compare with."""
    with (
        SandboxProcess(seed=1, properties=PROPERTIES, today=TODAY, opened=TODAY) as sandbox,
        Spoiler(sandbox.base_url) as supplier,
    ):
        made = Nights(tmp_path_factory.mktemp("real"), sandbox, supplier)
        for _ in range(COLD_NIGHTS + 1):
            assert failed_checks(made.sweep()) <= PLANTED
        yield made


def in_gb(change):
    """Spoil the answers of one market."""
    return lambda market, request, answer: change(request, answer) if market == "GB" else answer


def charges(change):
    """Change the charges of each product of an answer."""

    def spoil(_request, answer):
        reported = json.loads(answer)
        for each in reported.get("properties") or ():
            for stay in each.get("roomStays") or ():
                for product in stay.get("products") or ():
                    if product.get("charges"):
                        product["charges"] = change(product["charges"])
        return json.dumps(reported).encode()

    return in_gb(spoil)


def dearer(given):
    return {name: value * 100 if name in MONEY and value is not None else value for name, value in given.items()}


def without_floor(given):
    return {name: value for name, value in given.items() if name != "minSellablePrice"}


def double(lake: Lake, sweep_id: str) -> None:
    """Store the files of one market twice."""
    for table in ("offer", "penalty", "promotion", "cell"):
        for file in sorted((lake.table_root(table) / sweep_id).glob("*GB*.parquet")):
            file.with_name(file.name.replace("GB-", "GB-9")).write_bytes(file.read_bytes())


FAULTS = {
    "a market missing": ({"spoil": in_gb(lambda _r, _a: b'{"properties": []}')}, {"offered_share"}),
    "currency swapped": ({"spoil": in_gb(lambda _r, a: a.replace(b'"EUR"', b'"USD"'))}, {"quarantined_share"}),
    "prices x100": ({"spoil": charges(dearer)}, {"price_level_lead_031_to_090"}),
    "floors vanished": ({"spoil": charges(without_floor)}, {"floor_share"}),
    "one partition doubled": ({"in_lake": double}, {"key", "offers_not_balanced"}),
    # What is spoilt needs the last good night: see below.
    "stale answers": ({}, {"repeated_body_share"}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_blocks_the_night_and_the_last_good_one_stays(nights, name):
    fault, checks = FAULTS[name]
    if name == "stale answers":
        fault = {"spoil": lambda _market, request, _answer: nights.good[request]}
    before = published_sweeps(nights.lake)
    found = nights.sweep(**fault)
    assert checks <= failed_checks(found, "critical")
    with pytest.raises(GateBlocked):
        refuse_blocked(nights.lake, found.sweep_id, found)
    assert published_sweeps(nights.lake) == before


def test_a_night_in_good_order_passes_after_bad_ones(nights):
    assert failed_checks(nights.sweep()) <= PLANTED
