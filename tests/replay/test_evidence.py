"""A raw answer, shown again: the request, the body, and whether it is the one that was loaded."""

from __future__ import annotations

import gzip
import importlib
import json
import sys
from decimal import Decimal

import pytest
from raw_answers import STARTED, SWEEP, answer, hotel, land, record, room

from pipeline.cli import main
from pipeline.domain.errors import CorruptObject, InputError, UnknownSweep
from pipeline.domain.search import Operation
from pipeline.domain.shards import Partition
from pipeline.lake.raw import Manifest, encode_shard, write_manifest
from pipeline.lake.raw_answer import evidence_at
from pipeline.lake.simulated import SIMULATED
from pipeline.normalise.segment import normalise_segment
from pipeline.quote import ledger
from pipeline.quote.sample import ChosenOffer, ChosenRoom, Sample

ADDRESS = f"raw/{SWEEP}/multi-GB-000000.parquet#0"
BODY = answer(hotel(1, rooms=[room(roomName="[red]Sweet\x1b[31m")]))


@pytest.fixture
def landed(lake):
    """A sweep whose one shard has landed, gzipped; returns its segment."""
    manifest = Manifest(
        SWEEP, STARTED, STARTED.date(), True, "sandbox", "{}", (1,), (Partition(Operation.MULTI, "GB", 0, 32),),
        2, True, 1, "0", "1.0.0",
    )  # fmt: skip
    write_manifest(lake, manifest)
    body = gzip.compress(json.dumps(BODY).encode())
    return land(lake, [record(body=body, content_encoding="gzip", headers='{"date": "today"}')])


@pytest.fixture
def command(lake, monkeypatch, capfdbinary):
    def run(*arguments: str) -> tuple[int, bytes, bytes]:
        monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))
        monkeypatch.setattr(sys, "argv", ["nightaudit", "show", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfdbinary.readouterr()
        return int(ended.value.code or 0), out, err

    return run


def test_an_answer_is_shown_with_its_request_and_what_was_checked(lake, landed, command):
    normalise_segment(lake, SWEEP, landed, 4_000_000, {})
    code, out, _ = command(ADDRESS)
    text = out.decode()
    assert code == 0
    for expected in (
        '"propertyIds": [',
        '"total": 100.5',
        "Status: 200",
        "date: today",
        "matches lake.search",
        SIMULATED,
    ):
        assert expected in text
    assert "[red]Sweet" in text
    assert "\x1b" not in text


def test_numbers_are_shown_as_they_were_sent():
    showing = importlib.import_module("pipeline.cli.show")
    assert showing.pretty(b'{"total":100.50,"id":9007199254740993}') == (
        '{\n  "total": 100.50,\n  "id": 9007199254740993\n}'
    )


def test_an_answer_of_brackets_is_shown_as_text():
    showing = importlib.import_module("pipeline.cli.show")
    assert showing.pretty(b"[" * 100_000) == "[" * 100_000


@pytest.mark.usefixtures("landed")
def test_the_body_alone_is_written_byte_for_byte(command):
    code, out, _ = command(ADDRESS, "--body")
    assert code == 0
    assert out == json.dumps(BODY).encode()


@pytest.mark.usefixtures("landed")
def test_an_answer_that_is_not_loaded_yet_is_shown_all_the_same(lake):
    found = evidence_at(lake, ADDRESS)
    assert not found.is_loaded
    assert found.record.http_status == 200


def test_a_body_that_is_not_the_loaded_one_is_refused(lake, landed):
    normalise_segment(lake, SWEEP, landed, 4_000_000, {})
    lake.put(lake.shard_path(SWEEP, landed.shards[0].name), encode_shard([record(body=b'{"properties": []}')]))
    with pytest.raises(CorruptObject, match="not the one that was loaded"):
        evidence_at(lake, ADDRESS)


@pytest.mark.usefixtures("landed")
@pytest.mark.parametrize(
    ("address", "error", "reported"),
    [
        ("nonsense", InputError, "not a raw address"),
        (f"raw/{SWEEP}/multi-GB-000000.parquet", InputError, "not a raw address"),
        ("raw/../multi-GB-000000.parquet#0", InputError, "not a raw address"),
        (f"raw/{SWEEP}/multi-GB-000009.parquet#0", InputError, "no raw shard"),
        (f"raw/{SWEEP}/multi-GB-000000.parquet#7", InputError, "has 1 rows"),
        ("raw/20200101T000000Z-ffffff/multi-GB-000000.parquet#0", UnknownSweep, "holds no sweep"),
    ],
)  # fmt: skip
def test_a_wrong_address_is_reported_and_ends_with_exit_code_2(lake, address, error, reported):
    with pytest.raises(error, match=reported) as raised:
        evidence_at(lake, address)
    assert raised.value.exit_code == 2


def test_a_body_that_cannot_be_inflated_is_still_shown(lake, command, landed):
    lake.put(
        lake.shard_path(SWEEP, landed.shards[0].name),
        encode_shard([record(body=b"\x1f\x8bnot gzip", content_encoding="gzip")]),
    )
    code, out, _ = command(ADDRESS)
    assert code == 0
    assert b"cannot be decompressed" in out
    code, out, err = command(ADDRESS, "--body")
    assert (code, out) == (1, b"")
    assert b"cannot be decompressed" in err


@pytest.fixture
def quoted(lake):
    """A ledger of one quote that was answered, and one that was not."""
    offer = ChosenOffer(
        "multi", 7, "GB", "Hotel", STARTED.date(), 1, "2", "EUR", 5, 14, 0, "EUR", SWEEP, 1, STARTED,
        (ChosenRoom(1, 0, 0, 99, Decimal(100)),), 7,
    )  # fmt: skip
    ledger.begin(lake, ledger.Run("run", STARTED, True, "sandbox", Sample(2), 2))
    for number in (0, 1):
        ledger.intend(lake, "run", ledger.Intent(number, STARTED, offer, '{"propertyId":7}'))
    body = gzip.compress(b'{"reservationId":31337}')
    ledger.answered(lake, "run", 0, ledger.QuoteAnswer(200, "gzip", body, STARTED, STARTED, "", "", 31337))


@pytest.mark.usefixtures("quoted")
@pytest.mark.parametrize("part", ["answer", "intent"])
def test_a_quote_is_shown_with_its_request_its_answer_and_its_reservation(command, part):
    code, out, _ = command(f"quotes/run/000000-{part}.json")
    assert code == 0
    for expected in (
        '"propertyId": 7',
        '"reservationId": 31337',
        "Status: 200",
        "Reservation: 31337",
        SWEEP,
        SIMULATED,
    ):
        assert expected in out.decode()
    assert command(f"quotes/run/000000-{part}.json", "--body")[1] == b'{"reservationId":31337}'


@pytest.mark.usefixtures("quoted")
def test_a_quote_without_an_answer_is_shown_as_unknown(command):
    code, out, _ = command("quotes/run/000001-intent.json")
    assert code == 0
    assert "unknown: no answer was recorded" in out.decode()
    assert "(no body)" in out.decode()


@pytest.mark.usefixtures("quoted")
@pytest.mark.parametrize(
    "address",
    ["quotes/run/000001-answer.json", "quotes/run/000009-intent.json", "quotes/../000000-intent.json", "quotes/run"],
)
def test_an_address_that_the_ledger_does_not_know_is_refused(command, address):
    code, _, err = command(address)
    assert code == 2
    assert b"holds no quote" in err
