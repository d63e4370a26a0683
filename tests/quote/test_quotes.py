"""Quotes: off by default, once each, in the ledger before they leave, and compared with what the search said."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from contextlib import contextmanager
from decimal import Decimal

import pytest
from silent_supplier import SilentSupplier

from pipeline.domain.errors import CallsUsedUp, LakeFull, NothingSent, SupplierDown, SweepStopped, TokenRefused
from pipeline.domain.servers import Workforce
from pipeline.domain.tables import OFFER, QUOTE_OFFER, QUOTE_TABLES, TABLES
from pipeline.inputs import load as inputs
from pipeline.lake.database import query_published
from pipeline.night import quotes
from pipeline.night.night import Night
from pipeline.night.night_sweep import collect, start
from pipeline.night.quotes import all_summaries, quote
from pipeline.night.rebuild import rebuild
from pipeline.process.signals import stoppable
from pipeline.publish import publish, published_sweeps
from pipeline.quote import ledger
from pipeline.quote.ask import Asking, ask_quotes
from pipeline.quote.load import asked_so_far, load_ledger
from pipeline.quote.sample import Sample, choose
from pipeline.settings import utc_now
from pipeline.sweep import SweepOptions

pytestmark = pytest.mark.slow

LIMIT = 10_000_000


def ask(night, size=5, *, is_confirmed=True, **changed):
    sample = Sample(
        size, **{name: changed.pop(name) for name in ("markets", "property_ids", "seed") if name in changed}
    )
    settings = night.settings.model_copy(update=changed)
    return asyncio.run(quote(settings, night.lake, sample, is_confirmed=is_confirmed))


def rows(night, columns):
    query = f"SELECT {columns} FROM mart.quote_check ORDER BY intended_at, quote_no"  # noqa: S608 - our own words
    return query_published(night.lake.published_file, query).fetchall()


@contextmanager
def silent(night, status, body=b"{}"):
    """Replace the supplier of the night by a silent one."""
    manifest = max(night.lake.local("raw").glob("*/sweep.json"))
    path, before = manifest.relative_to(night.lake.root).as_posix(), manifest.read_text()
    with SilentSupplier(status, body) as supplier:
        hosts = (url.removeprefix("http://") for url in (night.sandbox.base_url, supplier.base_url))
        # As the lake itself writes: a file that was changed otherwise is damaged.
        night.lake.put(path, before.replace(*hosts).encode())
        yield supplier
    night.lake.put(path, before.encode())


def entries(night):
    return [entry for run in ledger.runs(night.lake) for entry in ledger.entries(night.lake, run.run_id)]


# Off, unless it is meant


@pytest.mark.parametrize(
    ("changed", "error", "reported"),
    [
        ({"quote_cap": 0}, NothingSent, "Quotes are switched off"),
        ({"quote_cap": 4}, NothingSent, "exceeds the cap of 4"),
        ({"scopes": "read_rooms"}, NothingSent, "need the scope write_rooms"),
        ({"is_confirmed": False}, NothingSent, "up to 5 reservations"),
        ({"markets": ("XX",)}, NothingSent, "36 market codes"),
        ({"size": 0}, NothingSent, "at least one"),
        ({"property_ids": (1,)}, NothingSent, "No published offer can be quoted"),
    ],
)
def test_nothing_is_asked_unless_it_is_wholly_meant(unquoted, changed, error, reported):
    before = unquoted.served("quote")
    with pytest.raises(error, match=reported):
        ask(unquoted, **changed)
    assert unquoted.served("quote") == before
    assert entries(unquoted) == []


def test_quotes_are_off_by_default(unquoted):
    assert type(unquoted.settings).model_fields["quote_cap"].default == 0


def test_nothing_is_asked_where_nothing_is_published(unquoted, tmp_path):
    from pipeline.lake import Lake

    with pytest.raises(NothingSent, match="Nothing is published yet"):
        ask(unquoted._replace(lake=Lake(str(tmp_path / "empty"))))


def test_a_cap_holds_whatever_was_chosen(quotable):
    offers = choose(quotable.lake.published_file, Sample(6), utc_now().date())
    calls = []

    async def never(*_, attempts=None):
        calls.append(attempts)
        raise CallsUsedUp("used up")

    rules = Asking(2, utc_now().date(), True, LIMIT)
    with pytest.raises(CallsUsedUp):
        asyncio.run(ask_quotes(quotable.lake, "run", offers, never, rules, now=utc_now))
    assert calls == [1]
    (entry,) = ledger.entries(quotable.lake, "run")
    assert entry.answer.failure == "CallsUsedUp"

    async def gone(*_, **__):
        return _answer(b'{"errors":[{"code":1023}]}')

    asked = asyncio.run(ask_quotes(quotable.lake, "other", offers, gone, rules, now=utc_now))
    assert asked == 2


def _answer(body, status=200):
    from pipeline.supplier.answer import Answer

    return Answer(status, "application/json", "", body, utc_now(), utc_now(), 1)


# The sample


def test_a_seed_chooses_the_same_offers_again_and_another_seed_others(unquoted):
    def chosen(**given):
        offers = choose(unquoted.lake.published_file, Sample(10, **given), utc_now().date())
        return [offer.identity for offer in offers]

    assert chosen() == chosen()
    assert chosen() != chosen(seed=2)
    assert len(set(chosen())) == 10
    first = chosen()[0][0]
    assert {identity[0] for identity in chosen(property_ids=(first,))} == {first}
    assert chosen(markets=("SE",)) == []


def test_an_offer_of_list_and_detail_is_one_offer_and_the_detail_is_quoted(unquoted):
    offers = choose(unquoted.lake.published_file, Sample(1000), utc_now().date())
    assert len({offer.identity for offer in offers}) == len(offers)
    assert {offer.source for offer in offers} == {"multi", "detail"}


# What comes of it


@pytest.fixture(scope="module")
def asked(copied, tmp_path_factory):
    """A night of which forty offers were quoted, what was reported of it, and how many quotes the supplier counted."""
    night = copied(tmp_path_factory.mktemp("quoted") / "night")
    before = night.served("quote")
    summary = ask(night, 40)
    return night, summary, night.served("quote") - before


@pytest.fixture
def quoted_night(asked):
    return asked[0]


def test_a_quote_is_recorded_with_both_prices_the_age_and_the_reservation(asked):
    quoted_night, summary, served = asked
    assert served == summary.chosen == 40
    assert sum(summary.outcomes.values()) == 40
    assert summary.outcomes["matched"] > 30
    found = rows(
        quoted_night, "outcome, search_total, quote_total, age_seconds, reservation_id, currency, quote_currency"
    )
    for outcome, before_total, total, age, reservation, currency, quoted_in in found:
        assert age >= 0
        assert (reservation is None) == (outcome == "gone")
        assert outcome == _expected(before_total, total, currency == quoted_in)


def _expected(before: Decimal, after: Decimal | None, is_same_currency: bool) -> str:
    if after is None:
        return "gone"
    assert is_same_currency
    return "matched" if after == before else "raised" if after > before else "lowered"


def test_list_detail_and_quote_of_an_offer_stand_side_by_side(quoted_night):
    truth = query_published(
        quoted_night.lake.published_file,
        "SELECT list_total, detail_total, quote_total, list_to_detail_seconds, detail_to_quote_seconds, quote_outcome, "
        "quote_above_detail FROM mart.offer_truth "
        "WHERE list_at IS NOT NULL AND detail_at IS NOT NULL AND quote_at IS NOT NULL",
    ).fetchall()
    assert truth
    for listed, detail, quoted, to_detail, to_quote, outcome, above in truth:
        assert listed == detail
        assert to_detail >= 0
        assert to_quote >= 0
        assert above == (None if quoted is None else quoted - detail)
        assert outcome == _expected(detail, quoted, is_same_currency=True)


def test_one_offer_key_leads_through_list_detail_and_quote(quoted_night):
    reported = (
        "SELECT offer_key, source AS told_by, total FROM mart.offer_latest UNION ALL "
        "SELECT offer_key, 'quote', quote_total FROM mart.quote_check"
    )
    ways = defaultdict(list)
    for key, told_by, total in query_published(quoted_night.lake.published_file, reported).fetchall():
        ways[key].append((told_by, total))
    both = [way for way in ways.values() if {"multi", "detail"} <= {told_by for told_by, _ in way}]
    assert any({told_by for told_by, _ in way} == {"multi", "detail", "quote"} for way in both)
    assert all(len({total for told_by, total in way if told_by != "quote"}) == 1 for way in both)


def test_every_row_leads_to_its_search_and_its_raw_answer(quoted_night):
    query = (
        "SELECT quote.raw_address, quote.reservation_id FROM mart.quote_check AS quote "
        "JOIN lake.quote_offer AS room USING (run_id, quote_no) JOIN lake.offer AS offer ON offer.sweep_id = "
        "quote.sweep_id AND offer.search_id = quote.search_id AND offer.offer_no = room.offer_no "
        "WHERE offer.total = room.search_total AND offer.product_id = room.asked_product_id AND room.room_no = 0"
    )
    found = query_published(quoted_night.lake.published_file, query).fetchall()
    assert len(found) == 40
    for address, reservation in found:
        assert quoted_night.lake.get_json(address)["reservation_id"] == reservation


def test_each_room_of_a_party_is_quoted_with_its_own_product_in_one_quote(quoted_night):
    query = (
        "SELECT quote.quote_no, quote.outcome, quote.search_total, quote.quote_total, sum(room.search_total), "
        "sum(room.total), list(room.asked_product_id ORDER BY room.room_no), count(DISTINCT room.room_id) "
        "FROM lake.quote AS quote JOIN lake.quote_offer AS room USING (run_id, quote_no) "
        "WHERE quote.party = '2+1' AND quote.rooms = 2 GROUP BY ALL"
    )
    found = query_published(quoted_night.lake.published_file, query).fetchall()
    assert any(row[1] == "matched" for row in found)
    sent = {entry.intent.quote_no: json.loads(entry.intent.request)["roomStays"] for entry in entries(quoted_night)}
    for number, outcome, searched, quoted, searched_sum, quoted_sum, products, room_types in found:
        assert [(room["id"], room["productId"]) for room in sent[number]] == list(enumerate(products))
        assert (searched, quoted) == (searched_sum, quoted_sum)
        assert room_types == (outcome != "gone")
    truth = "SELECT count(*) FROM mart.offer_truth WHERE party = '2+1' AND quote_total IS NOT NULL AND room_stay_id = 1"
    assert query_published(quoted_night.lake.published_file, truth).fetchone()[0] >= 1


def test_a_quoted_product_is_stored_as_the_offer_of_its_detail_answer_was(quoted_night):
    offer_columns = {column.name for column in QUOTE_OFFER.columns} & {column.name for column in OFFER.columns}
    same = " AND ".join(
        f"quoted.{name} IS NOT DISTINCT FROM offer.{name}" for name in sorted(offer_columns - {"offer_no"})
    )
    tables = (
        "FROM lake.quote AS quote JOIN lake.quote_offer AS quoted USING (run_id, quote_no) "
        "JOIN lake.offer AS offer ON offer.sweep_id = quote.sweep_id AND offer.search_id = quote.search_id "
        "AND offer.offer_no = quoted.offer_no WHERE quote.outcome = 'matched' AND quote.source = 'detail'"
    )
    counts = query_published(
        quoted_night.lake.published_file,
        f"SELECT count(*), count(*) FILTER ({same}), count(quoted.floor), count(quoted.included_charges) {tables}",
    ).fetchone()
    assert counts[0] == counts[1] > 10
    assert min(counts[2:]) > 0
    for child in ("penalty", "promotion"):
        names = [column.name for column in TABLES[child].columns[3:]]
        fields = ", ".join(f"each.{name}" for name in names)
        quoted, offered = (
            f"SELECT quote.run_id, quote.quote_no, quoted.room_no, {fields} "
            f"{tables.replace('WHERE', f'JOIN lake.{table} AS each ON {join} WHERE')} ORDER BY ALL"
            for table, join in (
                (f"quote_{child}", " AND ".join(f"each.{n} = quoted.{n}" for n in ("run_id", "quote_no", "room_no"))),
                (child, " AND ".join(f"each.{n} = offer.{n}" for n in ("sweep_id", "search_id", "offer_no"))),
            )
        )
        found = query_published(quoted_night.lake.published_file, quoted).fetchall()
        assert found == query_published(quoted_night.lake.published_file, offered).fetchall() != []


def test_an_offer_is_quoted_once_a_night_and_loading_twice_changes_nothing(quotable):
    ask(quotable, 40)
    ask(quotable, 20)
    quoted = [entry.intent.offer.identity for entry in entries(quotable)]
    assert len(quoted) == len(set(quoted)) == 60
    before = rows(quotable, "*")
    load_ledger(quotable.lake, LIMIT)
    assert rows(quotable, "*") == before
    assert [summary.chosen for summary in all_summaries(quotable.lake, LIMIT)] == [40, 20]


def test_quotes_that_a_killed_run_did_not_show_are_shown_by_the_next_one_and_by_publishing(quotable, monkeypatch):
    def killed(_):
        raise KeyboardInterrupt

    def shown():
        query = "SELECT count(*) FROM mart.quote_check"
        return query_published(quotable.lake.published_file, query).fetchone()[0]

    def publish_again():
        return publish(quotable.lake, published_sweeps(quotable.lake)[-1].sweep_id, utc_now())

    for then, more in ((lambda: ask(quotable, 1), 1), (publish_again, 0)):
        before = shown()
        with monkeypatch.context() as patch:
            patch.setattr(quotes, "refresh", killed)
            with pytest.raises(KeyboardInterrupt):
                ask(quotable, 3)
        assert shown() == before
        done = then()
        assert shown() == before + 3 + more
    assert (done.is_new, done.is_built) == (False, True)
    assert not publish_again().is_built


def test_the_tables_of_quotes_are_rebuilt_from_the_ledger(quotable):
    ask(quotable, 10)

    def tables():
        return [
            query_published(quotable.lake.published_file, f"FROM lake.{name} ORDER BY ALL").fetchall()
            for name in QUOTE_TABLES
        ]

    before = tables()
    for name in QUOTE_TABLES:
        shutil.rmtree(quotable.lake.table_root(name))
    options = SweepOptions(4, LIMIT, Workforce(1))
    with quotable.lake.writing("a rebuild"):
        asyncio.run(rebuild(quotable.lake, options, now=utc_now))
    assert tables() == before
    assert all(before)


def test_odd_texts_and_parts_of_an_answer_stop_nothing(quotable):
    body = (
        b'{"reservationId": 3, "property": {"propertyRemarks": "a\\ud800", "roomStays": [null, {"product": '
        b'{"boardBasis": {"name": "\\udfff"}, "promotions": [{"promoType": 5}]}}]}, "errors": [{"message": "\\ud800"}]}'
    )
    with silent(quotable, 200, body) as supplier:
        ask(quotable, 1, base_url=supplier.base_url)
    ask(quotable, 1)
    found = rows(quotable, "outcome, reservation_id = 3, property_remarks, messages")
    assert found[0] == ("not_comparable", True, "a\\ud800", "\\ud800")
    assert len(found) == 2


# What is lost is reported, and never requested again


@pytest.mark.parametrize(
    ("status", "outcome", "possible"),
    [(500, "failed", True), (429, "failed", False), (400, "refused", False), (200, "unknown", True)],
)
def test_no_answer_is_asked_for_twice(quotable, status, outcome, possible):
    body = {400: b'{"errors":[{"errorCode":1021}]}', 200: b'{"reservationId":'}.get(status, b"{}")
    with silent(quotable, status, body) as supplier:
        ask(quotable, 1, base_url=supplier.base_url)
    assert len(supplier.quotes) == 1
    assert rows(quotable, "outcome, is_reservation_possible, code") == [
        (outcome, possible, 1021 if status == 400 else None)
    ]


def test_a_timeout_is_unknown_sent_once_and_never_again(quotable):
    with silent(quotable, None) as supplier:
        ask(quotable, 1, base_url=supplier.base_url, read_timeout_seconds=2)
        assert len(supplier.quotes) == 1
    assert rows(quotable, "outcome, failure LIKE 'timeout%', http_status") == [("unknown", True, None)]
    ask(quotable, 3)
    quoted = [entry.intent.offer.identity for entry in entries(quotable)]
    assert len(quoted) == len(set(quoted)) == 4


def test_a_broken_connection_is_unknown_and_three_in_a_row_end_the_run(quotable):
    quotable.sandbox.control("faults", {"reset_rate": 1.0})
    with pytest.raises(SupplierDown, match="3 quotes in a row"):
        ask(quotable, 5)
    assert rows(quotable, "outcome") == [("unknown",)] * 3


def test_a_kill_between_call_and_answer_shows_as_unknown_and_is_not_asked_again(quotable):
    with silent(quotable, None) as supplier:
        given = {
            "base_url": supplier.base_url,
            "client_id": "id",
            "client_secret": "secret",
            "scopes": "read_rooms write_rooms",
            "quote_cap": "5",
            "lake": str(quotable.lake.root),
        }
        environment = os.environ | {f"NIGHTAUDIT_{name.upper()}": value for name, value in given.items()}
        command = [sys.executable, "-m", "pipeline.cli", "quote", "--sample", "2", "--yes-make-reservations"]
        child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        assert supplier.came.wait(60)
        child.send_signal(signal.SIGKILL)
        child.wait()
        (sent,) = supplier.quotes
    (lost,) = entries(quotable)
    assert lost.answer is None
    assert all_summaries(quotable.lake, LIMIT)[0].outcomes == {"unknown": 1}
    before = quotable.served("quote")
    ask(quotable, 5)
    assert quotable.served("quote") == before + 5
    found = rows(quotable, "outcome, is_reservation_possible, product_id, quoted_at")
    assert found[0] == ("unknown", True, sent["roomStays"][0]["productId"], None)
    assert sent["roomStays"][0]["productId"] not in [row[2] for row in found[1:]]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_waits_for_the_answer_to_a_quote_and_the_next_is_not_sent(quotable, number):
    offers = choose(quotable.lake.published_file, Sample(3), utc_now().date())
    sent = []

    async def stopped_meanwhile(_, request, **__):
        sent.append(request)
        os.kill(os.getpid(), number)
        await asyncio.sleep(0.2)
        return _answer(b'{"reservationId": 77, "property": {}}')

    rules = Asking(5, utc_now().date(), True, LIMIT)
    with pytest.raises(SweepStopped) as stopped, stoppable("kept", "next"):
        asyncio.run(ask_quotes(quotable.lake, "run", offers, stopped_meanwhile, rules, now=utc_now))
    assert stopped.value.exit_code == 128 + number
    (entry,) = ledger.entries(quotable.lake, "run")
    assert (len(sent), entry.answer.reservation_id) == (1, 77)


def test_a_recorded_intent_is_not_sent_again_whichever_process_recorded_it(quotable):
    (offer,) = choose(quotable.lake.published_file, Sample(1), utc_now().date())
    ledger.intend(quotable.lake, "run", ledger.Intent(0, utc_now(), offer, "{}"))

    async def never(*_, **__):
        raise AssertionError

    rules = Asking(5, utc_now().date(), True, LIMIT)
    asked = asyncio.run(ask_quotes(quotable.lake, "run", [offer], never, rules, now=utc_now))
    assert asked == 0


def test_a_refused_token_ends_the_run_and_leaves_no_unknown(quotable):
    with pytest.raises(TokenRefused):
        ask(quotable, 2, client_id="somebody-else")
    assert rows(quotable, "outcome, is_reservation_possible") == [("failed", False)]


def test_a_reservation_that_cannot_be_written_down_is_reported(quotable, monkeypatch):
    def full(*_):
        raise LakeFull("no space", kept="The rest is untouched.")

    monkeypatch.setattr(ledger, "answered", full)
    with pytest.raises(LakeFull) as error:
        ask(quotable, 1)
    assert "made the reservation " in error.value.kept
    assert all_summaries(quotable.lake, LIMIT)[0].outcomes == {"unknown": 1}
    monkeypatch.setattr("pipeline.quote.ask.reservation_id_of", lambda _: None)
    with pytest.raises(LakeFull) as error:
        ask(quotable, 1, seed=2)
    assert "was answered without the id of a reservation" in error.value.kept


# Opaque offers


def opaque_night(quotable, tmp_path, *, with_unbranded=False):
    """Publish a night of an opaque pair whose map is loaded, and return the pair."""
    pair = quotable.sandbox.control("properties")["opaque_pairs"][0]
    branded, unbranded = pair["branded"], pair["unbranded"]
    file = tmp_path / "map.csv"
    file.write_text(f"branded_id,unbranded_id\n{branded},{unbranded}\n")
    inputs.load(quotable.lake, "property-map", file, utc_now())
    spec = tmp_path / "spec.toml"
    ids = f"{branded}, {unbranded}" if with_unbranded else str(branded)
    spec.write_text(re.sub(r"ids = .*", f"ids = [{ids}]", quotable.settings.spec.read_text()))
    settings = quotable.settings.model_copy(update={"spec": spec})
    manifest = start(settings, quotable.lake, utc_now())
    asyncio.run(collect(Night(settings, quotable.lake, manifest)))
    publish(quotable.lake, manifest.sweep_id, utc_now())
    return branded, unbranded


def test_a_branded_property_is_quoted_under_its_unbranded_id_once_that_has_listed_it(quotable, tmp_path):
    branded, unbranded = opaque_night(quotable, tmp_path)
    ask(quotable, 5, property_ids=(branded,))
    found = rows(quotable, "property_id, sent_property_id, source, outcome")
    assert {row[:3] for row in found} == {(branded, unbranded, "detail")}
    assert "matched" in {row[3] for row in found}


def test_what_is_sent_for_two_properties_is_asked_once(quotable, tmp_path):
    branded, unbranded = opaque_night(quotable, tmp_path, with_unbranded=True)
    ask(quotable, 3, property_ids=(branded,))
    ask(quotable, 3, property_ids=(unbranded,))
    ask(quotable, 20)
    sent = [entry.intent.request for entry in entries(quotable)]
    assert len(sent) == len(set(sent)) > 6
    assert {branded, unbranded} <= {entry.intent.offer.property_id for entry in entries(quotable)}


def test_what_may_hold_a_reservation_is_not_sent_for_another_property(quotable, tmp_path):
    branded, unbranded = opaque_night(quotable, tmp_path, with_unbranded=True)
    offers = choose(quotable.lake.published_file, Sample(100, property_ids=(unbranded,)), utc_now().date())
    with silent(quotable, 500) as supplier:
        ask(quotable, 1, property_ids=(branded,), base_url=supplier.base_url)
    unknown, _ = asked_so_far(quotable.lake, LIMIT)
    left = choose(quotable.lake.published_file, Sample(100, property_ids=(unbranded,)), utc_now().date(), never=unknown)
    assert len(left) == len(offers) - 1
