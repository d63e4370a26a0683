"""A supplier's absurd value costs itself, from the wire to the pages: not its neighbours, no rule, no page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from spoiler import Spoiler

from pipeline.domain.search import Operation
from pipeline.lake import Lake
from pipeline.lake.database import open_published
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.supplier.fields import response_fields

sys.path.insert(0, str(Path(__file__).parent))

from hostile_answers import ABSURD, spoilt

# Four nights of processes of their own, while others may keep the processors busy.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
# Beside those that a rule finds something of.
HONEST = 15
SPEC = """
[properties]
ids = {ids}
[stays]
nights = [2]
[[stays.horizon]]
to_days = 1
every_days = 1
[ask]
markets = ["GB", "SE"]
parties = ["2"]
product_types = ["Hotel"]
currencies = ["EUR"]
operations = ["multi", "single"]
"""
RATES = "Date,GBP,SEK\n2020-01-01,0.85,11.2\n"
# What a terminal obeys: escapes and the second set of controls.
CONTROLS = re.compile("[\x00\x07\x1b\x80-\x9f]")
RELATIONS = (
    "SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE NOT internal "
    "UNION ALL SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE schema_name <> 'main' ORDER BY 1"
)


@dataclass(frozen=True)
class Night:
    """Two nights of a supplier: where they lie, how each command ended, what was not spoilt, and what is secret."""

    lake: Path
    said: dict[str, tuple[int, str]]
    honest: list[int]
    secrets: frozenset[str]

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return command(self.lake.parent, *argv)

    def rows(self, query: str, *given: object) -> list[tuple]:
        with open_published(Lake(str(self.lake)).published_file) as session:
            return session.execute(query, list(given)).fetchall()

    def of_the_honest(self, columns: str, relation: str) -> list[tuple]:
        return self.rows(
            f"SELECT {columns} FROM {relation} WHERE property_id IN (SELECT unnest($1)) ORDER BY ALL",  # noqa: S608 - ours
            self.honest,
        )


def command(folder: Path, *argv: str, **given: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NIGHTAUDIT_")}
    usual = {"NIGHTAUDIT_LAKE": "lake", "NIGHTAUDIT_WORKERS": "1", "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "pipeline.cli", *argv],
        cwd=folder,
        env=kept | usual | given,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )


def nights(folder: Path, honest: list[int] | None = None) -> Night:
    """Two nights of a supplier. All but the `honest` properties are spoilt; none is, where it is None."""
    said: dict[str, tuple[int, str]] = {}
    with SandboxProcess(seed=5, properties=len(ABSURD) + 4 * HONEST) as sandbox, Spoiler(sandbox.base_url) as supplier:
        ids = sandbox.control("properties")["property_ids"]
        if honest is not None:
            absurd = dict(zip([each for each in ids if each not in set(honest)], ABSURD, strict=False))
            assert len(absurd) == len(ABSURD)
            supplier.spoil = lambda _market, _request, text: spoilt(text, absurd)
        (folder / "sweep.toml").write_text(SPEC.format(ids=ids))
        (folder / "rates.csv").write_text(RATES)
        given = {
            "NIGHTAUDIT_BASE_URL": supplier.base_url,
            "NIGHTAUDIT_CLIENT_ID": sandbox.client_id,
            "NIGHTAUDIT_CLIENT_SECRET": sandbox.client_secret,
            "NIGHTAUDIT_REQUESTS_PER_SECOND": "1000",
            "NIGHTAUDIT_CONCURRENCY": "16",
            "NIGHTAUDIT_ATTEMPTS": "1",
            "NIGHTAUDIT_SPEC": "sweep.toml",
            "NIGHTAUDIT_TOLERATED_QUARANTINED_SHARE": "1",
            "NIGHTAUDIT_TOLERATED_FAILED_SHARE": "1",
        }
        said["rates"] = ended(command(folder, "load", "rates", "rates.csv", **given))
        said["first night"] = ended(command(folder, "nightly", **given))
        sandbox.control("night", {"night": 1})
        said["second night"] = ended(command(folder, "nightly", **given))
    secrets = frozenset({sandbox.client_secret, *supplier.authorized_by} - {""})
    night = Night(folder / "lake", said, honest or [], secrets)
    if honest is None:
        of_findings = night.rows("SELECT DISTINCT property_id FROM report.flag ORDER BY 1")
        return replace(night, honest=sorted({each for (each,) in of_findings[: 3 * HONEST]} | set(ids[:HONEST])))
    return night


def ended(done: subprocess.CompletedProcess[str]) -> tuple[int, str]:
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def clean(once_a_run) -> Night:
    return once_a_run("nights-of-the-honest", nights)


@pytest.fixture(scope="module")
def hostile(once_a_run, clean) -> Night:
    return once_a_run("hostile-nights", lambda folder: nights(folder, clean.honest))


def place_of(path: str) -> str:
    """How `hostile_answers` calls a field of an answer."""
    place = f"property.{path.removeprefix('properties[].').removeprefix('property.').removesuffix('[]')}"
    of_lists = {
        "roomStays": "room",
        "products": "product",
        "cancelPenalties": "penalty",
        "promotions": "promotion",
        "roomAmenities": "amenity",
    }
    for name, kind in of_lists.items():
        _, is_in, below = place.partition(f".{name}[].")
        place = f"{kind}.{below}" if is_in else place
    return place


def test_every_field_of_an_answer_has_absurd_values():
    paths = {*response_fields(Operation.MULTI), *response_fields(Operation.SINGLE)}
    assert {place_of(each) for each in paths if not each.startswith("errors")} == {place for place, _ in ABSURD}


def test_a_night_of_a_hostile_supplier_ends_well(hostile):
    for name, (code, said) in hostile.said.items():
        assert code == 0, f"{name}: {said}"
        assert "Traceback" not in said
        assert not CONTROLS.search(said)


def test_every_relation_can_be_read(hostile):
    for (name,) in hostile.rows(RELATIONS):
        hostile.rows(f"SELECT count(COLUMNS(*)) FROM {name}")  # noqa: S608 - our own names


def test_findings_of_normal_properties_do_not_depend_on_the_others(hostile, clean):
    price = "property_id, source, offer_key, total, pre_promo_total, floor, currency, available_rooms, snapshots"
    offers = clean.of_the_honest(price, "mart.offer_latest")
    assert offers
    assert hostile.of_the_honest(price, "mart.offer_latest") == offers
    finding = "property_id, rule, source, market, product_type, currency, size_pct, amount"
    findings = clean.of_the_honest(finding, "report.flag")
    assert len({rule for _, rule, *_ in findings}) > 1
    assert hostile.of_the_honest(finding, "report.flag") == findings


def test_no_file_and_no_message_holds_a_secret_or_a_token(hostile):
    # The secret, how it was sent, and a token for each of two nights.
    assert len(hostile.secrets) >= 4
    held = {str(file): file.read_bytes() for file in hostile.lake.rglob("*") if file.is_file()}
    assert len(held) > 100
    held |= {name: said.encode() for name, (_, said) in hostile.said.items()}
    assert [name for name, data in held.items() if any(secret.encode() in data for secret in hostile.secrets)] == []


def test_no_rule_fails(hostile):
    assert hostile.rows("FROM state.failed_rule") == []


def test_pages_are_small_and_hold_no_script_of_theirs(hostile):
    pages = list((hostile.lake / "reports").rglob("*.html"))
    assert pages
    for page in pages:
        text = page.read_text()
        assert len(text) < 1_000_000, page
        assert "<script>alert(1)" not in text, page
        assert not CONTROLS.search(text), page


def test_commands_show_it_without_its_controls(hostile):
    cases = hostile.rows("SELECT case_id FROM report.finding_case USING SAMPLE 8 (reservoir, 1)")
    assert cases
    for argv in (
        ["cases"], ["status"], ["verify", "--deep"], *(["explain", str(case)] for (case,) in cases),
        ["query", "SELECT DISTINCT left(room_name, 9) FROM lake.offer"],
        ["query", "--format", "csv", "SELECT DISTINCT left(board_name, 9) FROM lake.offer"],
    ):  # fmt: skip
        done = hostile.run(*argv)
        assert done.returncode == 0, f"{argv}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        assert not CONTROLS.search(done.stdout + done.stderr), argv
