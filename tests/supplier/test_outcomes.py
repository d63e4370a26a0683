"""What an answer means for its cells."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.codes import SHAPE_CODES
from pipeline.supplier.answer import Answer, Failure
from pipeline.supplier.error_bodies import error_codes
from pipeline.supplier.outcomes import Outcome, Verdict, may_be_poisoned, outcome_of

NOW = datetime(2031, 5, 10, tzinfo=UTC)


def answer(status, body=b"{}", encoding="", failure=None):
    return Answer(status, "application/json", encoding, body, NOW, NOW, 1, failure)


def errors(*items):
    return json.dumps({"errors": items}).encode()


def test_a_200_is_answered_whatever_it_says():
    assert outcome_of(answer(200, errors({"code": 1023}))) == Outcome(Verdict.ANSWERED)
    assert not may_be_poisoned(answer(200))


@pytest.mark.parametrize("name", ["errorCode", "code"])
@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_400_is_rejected_with_its_codes_in_either_item_shape(name, encoding):
    body = errors({name: 1014}, {name: 1027}, {name: 1014})
    rejected = answer(400, gzip.compress(body) if encoding else body, encoding)
    assert outcome_of(rejected) == Outcome(Verdict.REJECTED, (1014, 1027))
    assert not may_be_poisoned(rejected)


@pytest.mark.parametrize("code", sorted(SHAPE_CODES))
def test_a_code_on_the_shape_of_a_request_is_known(code):
    assert outcome_of(answer(400, errors({"errorCode": code}))).codes == (code,)


@pytest.mark.parametrize("code", [1014, 1015, 1018, 1027])
def test_a_code_on_what_was_asked_for_is_an_outcome(code):
    assert SHAPE_CODES.isdisjoint(outcome_of(answer(400, errors({"errorCode": code}))).codes)


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", errors({"errorCode": 4711}), errors("no"), b'{"errors": 3}'])
def test_a_400_without_a_documented_code_may_be_poisoned(body):
    assert outcome_of(answer(400, body)).verdict is Verdict.REJECTED
    assert may_be_poisoned(answer(400, body))


@pytest.mark.parametrize(
    ("failure", "may_help"),
    [
        (Failure.UNREACHABLE, False),
        (Failure.CONNECTION, True),
        (Failure.TIMEOUT, True),
        (Failure.TRUNCATED, True),
        (Failure.BODY_TOO_LARGE, True),
        (Failure.NOT_JSON, True),
        (Failure.SERVER_ERROR, True),
        (Failure.THROTTLED, False),
        (Failure.REDIRECT, True),
        (Failure.UNEXPECTED_STATUS, True),
        (Failure.NO_TOKEN, False),
    ],
)
def test_halves_may_help_where_one_property_can_be_to_blame(failure, may_help):
    failed = answer(None, b"", failure=failure)
    assert outcome_of(failed) == Outcome(Verdict.FAILED)
    assert may_be_poisoned(failed) is may_help


def test_a_request_that_is_too_large_may_do_better_in_halves():
    assert may_be_poisoned(answer(413, failure=Failure.UNEXPECTED_STATUS))


def test_a_failure_with_a_400_or_200_is_a_failure_all_the_same():
    assert outcome_of(answer(200, b"", failure=Failure.TRUNCATED)).verdict is Verdict.FAILED
    assert outcome_of(answer(400, b"", failure=Failure.TIMEOUT)).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        (errors({"errorCode": "1014"}), (1014,)),
        (b'{"errors": {"code": 1023}}', (1023,)),
        (errors({"errorCode": None, "code": 1023}), (1023,)),
        (errors({"code": True}), ()),
        (errors({"code": 1.5}), ()),
        (b"[" * 100_000, ()),
        (b'{"errors": [' + b" " * 70_000 + b"]}", ()),
    ],
)
def test_codes_are_read_where_they_can_be(body, codes):
    assert error_codes(body) == codes


@given(st.binary(max_size=200), st.sampled_from(["", "gzip", "br"]))
def test_no_body_makes_reading_codes_fail(body, encoding):
    assert error_codes(body, encoding) in {(), error_codes(body, encoding)}
