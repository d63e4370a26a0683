"""The structure of raw answers, compared with the document: each deviation with its count, share and an example."""

from __future__ import annotations

import pytest
from raw_answers import STARTED, SWEEP, answer, hotel, land, product, record, room

from pipeline.domain.search import Operation
from pipeline.domain.shards import Partition
from pipeline.lake.raw import Manifest, write_manifest
from pipeline.replay.drift import drift_of

SINGLE = Operation.SINGLE


@pytest.fixture
def found(lake):
    def run(*bodies, operation=Operation.MULTI, **given):
        manifest = Manifest(
            SWEEP, STARTED, STARTED.date(), True, "sandbox", "{}", (1,), (Partition(operation, "GB", 0, 32),),
            1, True, 1, "0", "1.0.0",
        )  # fmt: skip
        write_manifest(lake, manifest)
        records = [record(n, body, property_ids=(1,), operation=operation, **given) for n, body in enumerate(bodies)]
        land(lake, records, operation)
        return drift_of(lake, manifest, 4_000_000)

    return run


def reported(findings, *kinds):
    return [(each.kind, each.path, each.detail, each.occurrences) for each in findings if each.kind in kinds]


def test_an_answer_as_the_document_has_it_only_tells_what_is_missing(found):
    findings = found(answer(hotel(1)))
    assert {each.kind for each in findings} == {"missing_field"}
    assert reported(findings, "missing_field") == [
        ("missing_field", "properties[].roomStays[].products[].cancelPenalties[].penaltyNights", "missing or null", 1)
    ]
    assert findings[0].share == 0.5


def test_unknown_fields_are_counted_with_an_example(found):
    findings = found(answer(hotel(1)), answer(hotel(1, rooms=[room([product(bonus=1), product(bonus=2)])]), page=1))
    assert reported(findings, "unknown_field") == [
        ("unknown_field", "page", "integer", 1),
        ("unknown_field", "properties[].roomStays[].products[].bonus", "integer", 2),
    ]
    bonus = findings[1]
    assert (bonus.of, bonus.example) == (3, f"raw/{SWEEP}/multi-GB-000000.parquet#1")


def test_of_very_many_new_values_a_thousand_are_named_and_all_are_counted(found):
    promotions = [{"promoType": f"invented {n}"} for n in range(5_000)]
    findings = [
        each
        for each in found(answer(hotel(1, rooms=[room([product(promotions=promotions)])])))
        if each.kind == "new_value"
    ]
    assert len(findings) == 1_001
    assert sum(each.occurrences for each in findings) == 5_000
    assert ("(other values)", 4_000) in [(each.detail, each.occurrences) for each in findings]


def test_the_command_prints_a_few_of_very_many_and_counts_the_others(found, lake, nightaudit):
    promotions = [{"promoType": f"invented {n}"} for n in range(5_000)]
    names = {f"name{n}": n for n in range(2_000)}
    found(answer(hotel(1, rooms=[room([product(promotions=promotions, boardBasis={"id": 987654}, **names)])])))
    shown = nightaudit(lake.root, "drift", NIGHTAUDIT_LAKE=str(lake.root)).stdout
    assert shown.count("\nnew_value") == 11
    assert "987654" in shown
    assert "1,982 more are not shown" in shown
    assert len(shown) < 10_000
    assert "(100.00%)" in shown
    assert "00100%" not in shown


def test_changed_types_are_reported_with_both_kinds(found):
    changed = product(productId="900", charges={"total": "100.50"}, promotions={}, boardBasis=[])
    findings = found(answer(hotel(1, rooms=[room([changed])], currencyCode=7)))
    assert {(each.path.rpartition(".")[2], each.detail) for each in findings if each.kind == "changed_type"} == {
        ("productId", "text instead of integer"),
        ("total", "text instead of number"),
        ("promotions", "object instead of array"),
        ("boardBasis", "array instead of object"),
        ("currencyCode", "integer instead of text"),
    }


def test_a_date_without_an_offset_is_a_changed_type(found):
    penalty = {"penaltyStartDate": "2030-01-01T00:00:00", "penaltyEndDate": "2030-02-01T00:00:00+01:00"}
    body = {"property": {"propertyId": 1, "roomStays": [room([product(cancelPenalties=[penalty])], images=[3])]}}
    findings = found(body, operation=SINGLE)
    assert reported(findings, "changed_type") == [
        ("changed_type", "property.roomStays[].images[]", "integer instead of text", 1),
        (
            "changed_type",
            "property.roomStays[].products[].cancelPenalties[].penaltyStartDate",
            "text instead of date-time",
            1,
        ),
    ]


def test_new_values_of_enumerations_are_reported(found):
    new = product(boardBasis={"id": 999}, promotions=[{"promoType": "Lottery"}, {"promoType": "FREE_NIGHT"}])
    findings = found(
        answer(hotel(1, rooms=[room([new], rateType="RACK")]), errors=[{"code": 1999}, {"errorCode": 1023}])
    )
    assert {(path.rpartition(".")[2], detail) for _, path, detail, _ in reported(findings, "new_value")} == {
        ("id", "999"),
        ("promoType", "Lottery"),
        ("rateType", "RACK"),
        ("code", "1999"),
    }


def test_what_is_no_json_is_counted_and_costs_nothing_else(found):
    findings = found(b"{", b"[1]", answer(hotel(1)))
    assert reported(findings, "unreadable", "changed_type") == [
        ("unreadable", "$", "DecodeError", 1),
        ("changed_type", "$", "array instead of object", 1),
    ]


def test_errors_of_servers_in_between_say_nothing_about_the_document(found):
    assert found(b"<html>", http_status=503, failure="server_error") == []
    assert found(b"<html>", http_status=500, failure="server_error") == []


def test_a_server_error_of_the_service_is_compared_with_the_document_too(found):
    body = {"errors": [{"errorCode": 500, "errorDescription": 7, "trace": "x"}]}
    findings = found(body, http_status=500, failure="server_error")
    assert reported(findings, "unknown_field", "changed_type") == [
        ("changed_type", "errors[].errorDescription", "integer instead of text", 1),
        ("unknown_field", "errors[].trace", "text", 1),
    ]


def test_any_number_of_unknown_names_and_shapes_is_counted_in_bounded_memory(found, monkeypatch):
    from pipeline.replay import drift

    monkeypatch.setattr(drift, "_MOST_UNKNOWN", 5)
    monkeypatch.setattr(drift, "_MOST_SHAPES", 3)
    findings = found(*(answer(hotel(1, **{f"x{number}": 1})) for number in range(20)))
    unknown = reported(findings, "unknown_field")
    assert len(unknown) == 6
    assert sum(row[3] for row in unknown) == 20


def test_the_command_prints_each_deviation_completely_on_a_narrow_terminal(lake, found, monkeypatch, nightaudit):
    found(answer(hotel(1), page=1))
    monkeypatch.setenv("COLUMNS", "200")
    for form, expected in (("table", "unknown_field"), ("json", '"path": "page"')):
        done = nightaudit(lake.root, "drift", "--format", form, NIGHTAUDIT_LAKE=str(lake.root))
        assert not done.returncode
        assert expected in done.stdout


def test_the_column_of_every_response_field_is_shown_with_the_share_that_has_one(tmp_path, nightaudit):
    for form, expected in (("table", "34 of 34 fields"), ("json", '"columns": ["quote.reservation_id"]')):
        done = nightaudit(tmp_path, "drift", "--fields", "--format", form)
        assert not done.returncode
        assert expected in done.stdout
        assert "NOT STORED" not in done.stdout
