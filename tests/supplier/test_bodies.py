"""Wire bytes: inflating them, and looking at their start."""

from __future__ import annotations

import gzip
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.supplier.bodies import UnreadableBody, inflate, is_plainly_not_json


@given(st.binary(max_size=2000), st.sampled_from(["", "identity", "gzip", "GZIP ", "deflate"]))
def test_inflating_gives_back_what_was_sent(body, encoding):
    pack = {"gzip": gzip.compress, "deflate": zlib.compress}.get(encoding.strip().lower(), bytes)
    assert inflate(pack(body), encoding, limit_bytes=2000) == body


@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate", "identity"]))
def test_no_bytes_make_it_fail_in_another_way_or_go_beyond_the_limit(body, encoding):
    with suppress(UnreadableBody):
        assert len(inflate(body, encoding, limit_bytes=100)) <= 100


def test_several_gzip_members_are_one_body():
    assert inflate(gzip.compress(b"ab") + gzip.compress(b"cd"), "gzip", limit_bytes=4) == b"abcd"


def test_a_body_of_very_many_empty_members_is_refused_at_once():
    with pytest.raises(UnreadableBody, match="more than 1,000 members"):
        inflate(gzip.compress(b"") * 500_000, "gzip", limit_bytes=100)
    assert inflate(gzip.compress(b"a") * 1000, "gzip", limit_bytes=1000) == b"a" * 1000


@pytest.mark.parametrize("members", [1, 2])
def test_a_bomb_is_refused_at_the_limit(members):
    bomb = gzip.compress(b"\0" * 10_000_000) * members
    with pytest.raises(UnreadableBody, match="more than 1000 bytes"):
        inflate(bomb, "gzip", limit_bytes=1000)


@pytest.mark.parametrize(
    ("body", "encoding", "reason"),
    [
        (gzip.compress(b"{}" * 100, mtime=0)[:-10], "gzip", "breaks off"),
        (b"not gzip", "gzip", "damaged"),
        (b"{}", "br", "not asked for"),
        (b"{}" * 600, "", "more than"),
    ],
)
def test_what_cannot_be_inflated_says_why(body, encoding, reason):
    with pytest.raises(UnreadableBody, match=reason):
        inflate(body, encoding, limit_bytes=1000)


@pytest.mark.parametrize("encoding", ["", "gzip"])
@pytest.mark.parametrize(
    ("content_type", "body", "is_not_json"),
    [
        ("application/json", b'{"a": 1}', False),
        ("application/json; charset=utf-8", b"\xef\xbb\xbf \r\n{}", False),
        ("application/problem+json", b"{}", False),
        ("text/plain", b" {}", False),
        ("", b"{}", False),
        ("text/html", b"<html>", True),
        ("text/html", b"", True),
    ],
)
def test_json_is_recognised_by_its_start(content_type, encoding, body, is_not_json):
    wire = gzip.compress(body) if encoding else body
    assert is_plainly_not_json(content_type, encoding, wire) is is_not_json


def test_a_compressed_body_labelled_json_is_read_as_labelled_unless_it_is_empty():
    assert not is_plainly_not_json("application/json", "gzip", b"anything")
    assert is_plainly_not_json("application/json", "gzip", b"")
    assert is_plainly_not_json("application/json", "", b"<html>")
    assert is_plainly_not_json("text/html", "gzip", b"not even gzip")
