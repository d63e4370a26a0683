"""A flag traced to its raw answers: `nightaudit explain` of every rule, and when answers have changed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from conftest import NIGHTS, copied
from nights import filled
from planted_world import rows

from pipeline.domain.errors import CorruptObject, LakeError
from pipeline.domain.tables import REJECT
from pipeline.inputs.load import load
from pipeline.lake.raw import encode_shard, read_shard
from pipeline.lake.relations import detectors, finding_rules
from pipeline.lake.sweep_files import quarantine_file
from pipeline.process.limits import needed_by_mb, needed_mb
from pipeline.publish.publish import publish
from pipeline.publish.refresh import refresh
from pipeline.replay.answers import answers_behind
from pipeline.replay.explain import explain
from pipeline.replay.finding import flag_row
from pipeline.supplier.bodies import inflate

# Each rule is replayed over lakes of several nights.
pytestmark = pytest.mark.slow

MOST = 64_000_000


def flags_of(*lakes):
    """One flag of each rule, with the lake that it is in."""
    return [
        (lake, relation, rule, flag_id)
        for lake in lakes
        for relation, rule, flag_id in rows(
            lake, "SELECT relation, rule, min(flag_id) FROM report.flag GROUP BY ALL ORDER BY ALL"
        )
    ]


def flag_of(lake, rule):
    return next(flag_id for _, _, reported, flag_id in flags_of(lake) if reported == rule)


def test_the_verdict_of_each_rule_is_the_same_when_recomputed_from_raw(world, year):
    flags = flags_of(world.lake, year.lake)
    assert {relation for _, relation, _, _ in flags} == set(detectors())
    for lake, _, rule, flag_id in flags:
        explained = explain(lake, flag_id, MOST)
        assert explained.is_found, rule
        assert [each for each in explained.comparisons if not each.is_same] == [], rule
        if rule != "property_gone_quiet":
            assert all(each.offer for each in explained.observations), rule


def test_the_nights_that_are_replayed_are_counted_one_by_one(world):
    told = []
    flag_id = flag_of(world.lake, "evergreen_promotion")
    explained = explain(world.lake, flag_id, MOST, lambda *counted: told.append(counted))
    nights = len(explained.sweeps)
    assert told == [(done, nights) for done in range(nights + 1)]


def test_the_command_gets_by_with_the_address_space_that_it_asks_for(world):
    enough = needed_by_mb("explain")
    assert enough < needed_mb()
    command = [sys.executable, "-m", "pipeline.cli", "explain", flag_of(world.lake, "market_disparity")]
    done = subprocess.run(
        ["sh", "-c", f'ulimit -v {enough * 1_000_000 // 1024 + 1} && exec "$@"', "sh", *command],
        env=os.environ | {"NIGHTAUDIT_LAKE": str(world.lake.root)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_every_relation_of_findings_carries_the_id_that_explain_takes(world, year):
    for relation in {rule.full_name for rule in finding_rules().values()}:
        query = f"SELECT flag_id, rule FROM {relation}"  # noqa: S608 - our own names
        found = [*rows(world.lake, query), *rows(year.lake, query)]
        assert found, relation
        assert all(re.fullmatch(rf"{rule}-[0-9a-f]{{16}}", flag_id) for flag_id, rule in found), relation


@pytest.mark.parametrize("name", ["package_leak", "room_ladder_inversion"])
def test_a_finding_of_a_rule_that_makes_no_flags_is_led_back_as_well(year, name):
    flag_id = rows(year.lake, f"SELECT min(flag_id) FROM report.{name}")[0][0]  # noqa: S608 - our own names
    explained = explain(year.lake, flag_id, MOST)
    assert (explained.is_flag, explained.makes_flags) == (False, False)
    assert explained.is_reproduced
    assert all(each.offer for each in explained.observations)


def test_a_breach_is_led_back_before_a_night_makes_it_a_flag(lake, tmp_path, reported):
    file = tmp_path / "prices.csv"
    query = f"""
        COPY (
            SELECT held.* EXCLUDE (price, channel, observed_at, input_id, line_no, loaded_at), 1 AS price,
                'shop' AS channel, strftime(held.observed_at, '%Y-%m-%dT%H:%M:%SZ') AS observed_at
            FROM mart.selling_price AS held
            INNER JOIN (
                SELECT input_id, line_no FROM mart.price_against_floor
                WHERE source = 'multi' AND verdict = 'kept' ORDER BY ALL LIMIT 1
            ) AS kept USING (input_id, line_no)
        ) TO '{file}'"""  # noqa: S608 - our own names
    with duckdb.connect(":memory:") as session:
        session.execute(f"ATTACH '{lake.published_file}' AS held (READ_ONLY)")
        session.execute("USE held")
        session.execute(query)
    load(lake, "prices", file, datetime(2031, 1, 1, tzinfo=UTC))
    assert refresh(lake)
    new = "SELECT flag_id FROM report.floor_breach WHERE source = 'multi' AND channel = 'shop'"
    ((flag_id,),) = rows(lake, new)
    explained = explain(lake, flag_id, MOST)
    assert (explained.is_flag, explained.makes_flags, explained.is_reproduced) == (False, True, True)
    code, text = reported(flag_id)
    assert code == 0
    assert "it is not from a published night" in text
    prices = [line for line in text.splitlines() if line.startswith("Selling price: ")]
    assert len(explained.prices) > 1
    assert len(prices) == 1
    assert re.match(r"Selling price: 1(\.0+)? EUR, room_id \d+, board_id \d+, policy_key -?\d+, .*\(shop\)", prices[0])


def test_a_verdict_is_the_same_without_an_offer_that_the_audit_took_out(lake):
    """What it took is missing in the replay as it was that night: of such a detail, nothing is compared."""
    last = lake.sweep_ids()[-1]
    sign = "rule = 'market_disparity' AND source = 'detail'"
    (property_id, market), *_ = rows(lake, f"SELECT property_id, market FROM report.flag WHERE {sign} ORDER BY ALL")  # noqa: S608 - our own names
    here = f"property_id = {property_id} AND market = '{market}' AND source = 'detail'"
    taken = f"SELECT search_id, min(offer_no) FROM lake.offer WHERE sweep_id = '{last}' AND {here} GROUP BY ALL"  # noqa: S608 - our own names
    quarantined = [
        filled(REJECT, {"sweep_id": last, "search_id": search_id, "offer_no": offer_no, "property_id": property_id})
        for search_id, offer_no in rows(lake, taken)
    ]
    place = quarantine_file(lake, last)
    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(quarantined, schema=REJECT.schema), place)
    lake.published_file.unlink()
    publish(lake, last, datetime(2031, 1, 1, tzinfo=UTC))
    assert rows(lake, f"SELECT DISTINCT is_whole FROM mart.offer_latest WHERE {here}") == [(False,)]  # noqa: S608 - our own names
    flags = rows(lake, f"SELECT min(flag_id) FROM report.flag WHERE {here} GROUP BY rule, last_flagged_sweep_id")  # noqa: S608 - our own names
    assert flags
    assert all(explain(lake, flag_id, MOST).is_reproduced for (flag_id,) in flags)


def test_what_reads_history_is_replayed_over_the_nights_between(world):
    explained = explain(world.lake, flag_of(world.lake, "reference_never_charged"), MOST)
    assert len(explained.sweeps) == len(NIGHTS)


def test_the_command_prints_what_leads_to_a_flag(lake, reported):
    flag_id = flag_of(lake, "wrong_discount")
    code, text = reported(flag_id)
    assert code == 0
    for expected in ("show raw/", "SHA-256", "wrong_discount, version 3", '"market"', "number by number", "total"):
        assert expected in text
    code, text = reported(flag_id, "--format", "json")
    document = json.loads(text)
    assert document["verdict"]["is_reproduced"] is True
    assert document["observations"][0]["request"]["roomStays"]
    code, text = reported(flag_id[:-1] + "z")
    assert (code, flag_id in text) == (2, True)
    code, text = reported("package_leak-0000000000000000")
    assert (code, "There is no flag" in text) == (2, True)


@pytest.fixture
def reported(lake, nightaudit):
    """The exit code of `nightaudit explain`, and what it prints."""

    def run(*arguments):
        done = nightaudit(lake.root, "explain", *arguments, NIGHTAUDIT_LAKE=str(lake.root))
        return done.returncode, done.stdout + done.stderr

    return run


def test_raw_answers_that_are_gone_are_reported(lake):
    flag_id = flag_of(lake, "wrong_discount")
    shutil.rmtree(lake.local(lake.raw_folder(lake.sweep_ids()[-1])))
    with pytest.raises(LakeError, match="gone"):
        explain(lake, flag_id, MOST)


def test_changed_bytes_are_reported(lake):
    flag_id = flag_of(lake, "wrong_discount")
    for file in lake.local(lake.raw_folder(lake.sweep_ids()[-1])).glob("*.parquet"):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    with pytest.raises(CorruptObject):
        explain(lake, flag_id, MOST)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"started_at": datetime(2031, 1, 1, tzinfo=UTC)}, "started_at"),
        ({"http_status": 500}, "http_status"),
        ({"request": b"{}"}, "request"),
    ],
)
def test_a_record_that_differs_outside_its_body_is_reported_with_the_difference(lake, change, said):
    flag_id = flag_of(lake, "wrong_discount")
    item = flag_row(lake, flag_id)["evidence"][-1]
    search, found = answer_of(lake, item)
    shard = lake.local(search["raw_address"].partition("#")[0])
    records = read_shard(lake, item["sweep_id"], shard.stem)
    changed = [replace(record, **change) if record == found.record else record for record in records]
    lake.put(search["raw_address"].partition("#")[0], encode_shard(changed))
    with pytest.raises(CorruptObject, match=said):
        explain(lake, flag_id, MOST)


def test_a_replaced_raw_answer_is_reported_for_each_rule(world, year, tmp_path):
    for lake, _, _, flag_id in flags_of(*copies(world, year, tmp_path)):
        with answered_otherwise(lake, flag_id, is_loaded=False), pytest.raises(CorruptObject, match="not the one"):
            explain(lake, flag_id, MOST)


def test_answers_that_say_something_else_make_another_verdict_of_each_rule(world, year, tmp_path):
    for lake, _, rule, flag_id in flags_of(*copies(world, year, tmp_path)):
        with answered_otherwise(lake, flag_id, is_loaded=True):
            explained = explain(lake, flag_id, MOST)
        assert not explained.is_reproduced, rule
        assert not explained.is_found or [each.name for each in explained.comparisons if not each.is_same], rule


def test_a_verdict_that_raw_does_not_bear_out_is_reported(lake):
    flag_id = flag_of(lake, "wrong_discount")
    with duckdb.connect(":memory:") as session:
        session.execute(f"ATTACH '{lake.published_file}' AS held")
        session.execute(f"UPDATE held.state.flag_open SET size_pct = 99 WHERE flag_id = '{flag_id}'")  # noqa: S608 - our own names
    explained = explain(lake, flag_id, MOST)
    assert not explained.is_reproduced
    assert [each.name for each in explained.comparisons if not each.is_same] == ["size_pct"]


def test_a_finding_of_an_older_version_of_its_rule_is_reproduced(lake):
    flag_id = flag_of(lake, "wrong_discount")
    with duckdb.connect(":memory:") as session:
        session.execute(f"ATTACH '{lake.published_file}' AS held")
        session.execute(f"UPDATE held.state.flag_open SET rule_version = 0 WHERE flag_id = '{flag_id}'")  # noqa: S608 - our own names
    explained = explain(lake, flag_id, MOST)
    assert explained.is_reproduced
    assert explained.changed_version.flagged == 0


def copies(world, year, folder):
    return copied(world.lake, folder / "world"), copied(year.lake, folder / "year")


@contextmanager
def answered_otherwise(lake, flag_id, *, is_loaded):
    """Let the answer of the last observation of a flag name other prices, or offers where it had none.

    `is_loaded`: the tables know the other answer too.
    """
    last = flag_row(lake, flag_id)["evidence"][-1]
    search, found = answer_of(lake, last)
    shard = lake.local(search["raw_address"].partition("#")[0])
    tables = (lake.table_root("search") / last["sweep_id"]).glob("*.parquet")
    table = next(file for file in tables if holds(file, search["search_id"]))
    before = {file: file.read_bytes() for file in (shard, table)}
    body = otherwise(lake, flag_id, last, found)
    records = [
        replace(record, body=body, content_encoding="") if record == found.record else record
        for record in read_shard(lake, last["sweep_id"], shard.stem)
    ]
    # As the lake itself writes: a file that was changed otherwise is damaged.
    lake.put(shard.relative_to(lake.root).as_posix(), encode_shard(records))
    if is_loaded:
        rows_of_table = pq.read_table(table)
        is_it = pc.equal(rows_of_table["search_id"], search["search_id"])
        sha256 = pc.if_else(is_it, hashlib.sha256(body).hexdigest(), rows_of_table["body_sha256"])
        place = rows_of_table.column_names.index("body_sha256")
        pq.write_table(rows_of_table.set_column(place, "body_sha256", sha256), table)
    yield
    for file, data in before.items():
        file.write_bytes(data)


def answer_of(lake, item):
    return answers_behind(lake, [{"evidence": [item]}])[item["sweep_id"], item["search_id"]]


def holds(file, search_id):
    return search_id in pq.read_table(file, columns=["search_id"])["search_id"].to_pylist()


def otherwise(lake, flag_id, item, found):
    """The body with prices and floors raised, each by a share of its own; of one without the offer, with it."""
    if item["offer_key"] is None:
        _, found = answer_of(lake, flag_row(lake, flag_id)["evidence"][0])
        return inflate(found.record.body, found.record.content_encoding, limit_bytes=MOST)
    plain = inflate(found.record.body, found.record.content_encoding, limit_bytes=MOST)
    money = rb'"(total|minSellablePrice|prePromoTotal)":([0-9.]+)'
    more = {b"total": 1.1, b"minSellablePrice": 1.2, b"prePromoTotal": 1.3}
    return re.sub(money, lambda at: b'"%s":%.2f' % (at[1], more[at[1]] * float(at[2])), plain)
