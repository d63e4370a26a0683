"""The texts of errors are stored beside their codes, whatever they came with."""

from __future__ import annotations

import pytest
from raw_answers import answer, hotel, normalised, record


@pytest.mark.parametrize(
    ("status", "item"),
    [
        (200, {"code": 1023, "message": "none left"}),
        (400, {"errorCode": 1014, "errorDescription": "none left"}),
        (500, {"errorCode": 500, "errorDescription": "none left"}),
    ],
)
def test_a_text_is_stored_in_either_shape(lake, status, item):
    failure = "server_error" if status == 500 else ""
    found = normalised(
        lake, [record(body={"errors": [item, {"message": "and more"}]}, http_status=status, failure=failure)]
    )
    assert found["search"]["messages"].to_pylist() == ["none left\nand more"]


def test_an_answer_without_errors_has_no_text_and_odd_texts_stop_nothing(lake):
    odd = b'{"errors": [{"code": 1023, "message": "\\ud800"}, {"message": 7}, "out of order"]}'
    found = normalised(lake, [record(0, answer(hotel(1))), record(1, odd)])
    assert found["search"]["messages"].to_pylist() == [None, "?"]
