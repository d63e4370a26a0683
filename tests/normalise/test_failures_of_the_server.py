"""A server's error in a 200 never says that a property is absent, or that it has nothing on sale.

However the error is wrapped, spelt, placed, padded and encoded: its cells have failed, and the client tries again.
If it comes with properties, their offers are kept, and those that are missing have failed.
"""

from __future__ import annotations

import gzip
import json
import tempfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_answers import SWEEP, answer, cells_of, hotel, normalised, product, record, room

from pipeline.domain.search import Operation
from pipeline.lake import Lake
from pipeline.normalise.interned import Interned
from pipeline.normalise.read_answer import read_answer
from pipeline.normalise.segment import rows_of_answers, unanswered
from pipeline.supplier.answer import Failure
from pipeline.supplier.envelope import failure_in

LIMIT = 64_000_000

quickly = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)

operations = st.sampled_from([Operation.MULTI, Operation.SINGLE])
codes = st.integers(500, 599)
spelt_codes = codes.flatmap(
    lambda code: st.sampled_from([code, float(code), f"{code}", f"{code}.0", f" {code}", f"E{code}", f"HTTP {code}"])
)
code_names = st.sampled_from(
    ["errorCode", "code", "ErrorCode", "error_code", "CODE", "status", "statusCode", "http-status"]
)
items = st.builds(lambda name, code: {name: code, "message": "unexpected"}, code_names, spelt_codes)
errors = items.flatmap(lambda item: st.sampled_from([[item], item, [{"message": "first"}, item], [None, item]]))
error_names = st.sampled_from(["errors", "error", "Errors", "ERROR", "fault", "exceptions"])
wrappers = st.lists(st.sampled_from(["response", "data", "result", "body", "d", "Envelope"]), max_size=4)
words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
empty_listings = st.sampled_from([{}, {"properties": []}, {"properties": None}, {"property": None}, {"properties": {}}])


@st.composite
def failures(draw):
    """An answer that speaks of a server's error in any place, and names no property."""
    document = {draw(error_names): draw(errors)} if draw(st.booleans()) else draw(items)
    for name in draw(wrappers):
        document = {name: [document] if draw(st.booleans()) else document}
    padding = {"trace": "x" * draw(st.sampled_from([0, 1, 600, 70_000]))} | {"note": draw(words)}
    parts = [document, padding, draw(empty_listings)]
    return {name: held for part in draw(st.permutations(parts)) for name, held in part.items()}


@st.composite
def spelt(draw, documents):
    """The bytes of a document with its content encoding."""
    text = json.dumps(draw(documents), ensure_ascii=draw(st.booleans()))
    body = text.encode(draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16"])))
    if body.startswith(b"{"):
        body = b"\n " * draw(st.sampled_from([0, 1, 300])) + body
    encoding = draw(st.sampled_from(["", "gzip", "x-gzip"]))
    return (gzip.compress(body) if encoding else body), encoding


def cells_after(body, encoding, operation):
    ids = (1, 2, 3) if operation is Operation.MULTI else (1,)
    sent = record(body=body, content_encoding=encoding, property_ids=ids, operation=operation)
    with tempfile.TemporaryDirectory() as folder:
        return cells_of(normalised(Lake(folder), [sent], operation))


@quickly
@given(operations, spelt(failures()))
def test_an_error_alone_fails_every_cell_and_is_tried_again(operation, sent):
    body, encoding = sent
    failure, detail = failure_in(operation, body, encoding, limit_bytes=LIMIT)
    assert failure is not None
    assert detail.startswith("HTTP 200 with ")
    assert {status for status, _, _ in cells_after(body, encoding, operation).values()} == {"failed"}


@pytest.mark.slow
@quickly
@given(st.data())
def test_an_error_beside_properties_keeps_their_offers_and_fails_the_others(data):
    name, said = data.draw(error_names), data.draw(errors)
    places = st.sampled_from(["beside", "wrapped", "in a property", "in its place", "in its rooms"])
    place = data.draw(places)
    listed, beside = [hotel(1)], {}
    if place == "beside":
        beside = {name: said}
    elif place == "wrapped":
        beside = {"meta": [{name: said}]}
    elif place == "in a property":
        listed.append({"propertyId": 2, name: said})
    elif place == "in its place":
        listed.append({name: said})
    else:
        listed.append(hotel(2, rooms=[{name: said}]))
    parts = [{"properties": data.draw(st.permutations(listed))}, beside]
    document = {key: held for part in data.draw(st.permutations(parts)) for key, held in part.items()}
    body, encoding = data.draw(spelt(st.just(document)).filter(lambda sent: not is_utf16(*sent)))
    cells = cells_after(body, encoding, Operation.MULTI)
    assert cells[1] == ("offered", None, 1)
    assert {cells[2][0], cells[3][0]} == {"failed"}


@pytest.mark.slow
@quickly
@given(
    operations,
    st.recursive(
        st.none() | st.booleans() | st.integers(-5, 5) | words,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    ),
)
def test_an_answer_is_of_properties_or_of_a_documented_code_or_it_has_failed(operation, document):
    body = json.dumps(document).encode()
    assert failure_in(operation, body, "", limit_bytes=LIMIT)[0] is not None
    assert {status for status, _, _ in cells_after(body, "", operation).values()} == {"failed"}


@pytest.mark.slow
@quickly
@given(spelt(st.sampled_from([
    {"errors": [{"code": 1023, "message": "error 500"}]}, {"errors": [{"errorCode": 1025}], "took": 512},
    {"properties": []}, {"properties": [], "errors": None, "requestId": "500"},
    {"properties": [], "errorCode": "0000", "errorMessage": "OK"}, {"properties": [], "errorCode": "0", "status": 200},
    {"properties": [], "status": "success", "code": "OK", "partial": False, "error": "none"},
])))  # fmt: skip
def test_an_answer_that_says_there_is_nothing_is_taken_at_its_word(sent):
    body, encoding = sent
    if not is_utf16(body, encoding):
        assert failure_in(Operation.MULTI, body, encoding, limit_bytes=LIMIT) == (None, "")
        statuses = {status for status, _, _ in cells_after(body, encoding, Operation.MULTI).values()}
        assert statuses <= {"absent", "no_offer"}


@pytest.mark.parametrize(
    "beside",
    [
        {"code": "INTERNAL_ERROR", "message": "x"},
        {"status": 429},
        {"code": 401, "message": "token expired"},
        {"statusCode": "403"},
        {"partial": True},
        {"timedOut": True},
        {"status": "Service Unavailable"},
        {"error": True},
    ],
)
def test_an_empty_listing_beside_a_sign_of_failure_says_nothing_of_a_property(beside):
    body = json.dumps({"properties": []} | beside).encode()
    assert failure_in(Operation.MULTI, body, "", limit_bytes=LIMIT)[0] is Failure.SERVER_ERROR
    assert {status for status, _, _ in cells_after(body, "", Operation.MULTI).values()} == {"failed"}


MESSAGES = [
    {"message": "An unexpected error occurred"}, {"detail": "no answer upstream"}, {"warnings": ["Try again later"]},
    {"meta": {"info": "search backend unavailable"}}, {"title": "Service down"},
]  # fmt: skip
HARMLESS = [
    {"requestId": "9f3c-77 ab"}, {"timestamp": "2026-11-23T01:02:03Z"}, {"date": "Mon, 23 Nov 2026 16:57:04 GMT"},
    {"took": 12, "version": "1.2 beta"}, {"trace": {"id": "00-4bf92f3577b34da6-01", "hops": [1, 2]}}, {"count": 0},
    {"status": "OK", "server": "eu-west-1 b", "cached": False},
]  # fmt: skip


@pytest.mark.parametrize("beside", MESSAGES)
def test_a_message_where_nothing_is_on_sale_is_doubt_and_is_asked_again(beside):
    for operation, document in (
        (Operation.MULTI, {"properties": []} | beside),
        (Operation.MULTI, answer(hotel(1, rooms=[]), **beside)),
        (Operation.MULTI, answer(hotel(1, rooms=[]) | beside)),
        (Operation.MULTI, answer(hotel(1, rooms=[room([], **beside)]))),
        (Operation.SINGLE, {"property": hotel(1, rooms=[])} | beside),
    ):
        body = json.dumps(document).encode()
        if not document.get("properties", True):
            assert failure_in(operation, body, "", limit_bytes=LIMIT)[0] is Failure.SERVER_ERROR
        assert {status for status, _, _ in cells_after(body, "", operation).values()} == {"failed"}
        assert unanswered(body, "", operation, (1,), 10**6) == (1,)


@pytest.mark.parametrize("beside", HARMLESS)
def test_ids_instants_and_numbers_where_nothing_is_on_sale_cost_nothing(beside):
    body = json.dumps({"properties": []} | beside).encode()
    assert failure_in(Operation.MULTI, body, "", limit_bytes=LIMIT) == (None, "")
    assert {status for status, _, _ in cells_after(body, "", Operation.MULTI).values()} == {"absent"}


@pytest.mark.parametrize("beside", MESSAGES)
def test_a_message_beside_offers_says_nothing_of_the_other_properties(beside):
    cells = cells_after(json.dumps(answer(hotel(1)) | beside).encode(), "", Operation.MULTI)
    assert [status for status, _, _ in cells.values()] == ["offered", "absent", "absent"]


def test_an_answer_with_a_field_twice_calls_no_property_absent(lake):
    first, second = (json.dumps(answer(hotel(number))) for number in (1, 2))
    body = f"{first[:-1]},{second[1:]}".encode()
    found = cells_of(normalised(lake, [record(body=body, property_ids=(1, 2, 3))]))
    assert {found[1][0], found[3][0]} == {"failed"}
    assert found[2][0] == "offered"


ERROR = {"errorCode": 500, "errorDescription": "unexpected"}
NO_PRODUCTS = [ERROR, {}, {"productId": None, "charges": {}, "promotions": []}, {"productId": 7, "error": "timeout"}]
NO_ROOMS = [ERROR, {}, {"id": 0, "errors": [ERROR]}, {"id": 0, "products": [], "error": "timeout"}]


def bodies(*rooms):
    return [(Operation.MULTI, answer(hotel(1, rooms))), (Operation.SINGLE, {"property": hotel(1, rooms)})]


def read_rooms(lake, operation, body):
    tables = normalised(lake, [record(body=body, property_ids=(1,), operation=operation)], operation)
    return cells_of(tables)[1], [(row["part"], row["property_id"]) for row in tables["reject"].to_pylist()]


@pytest.mark.parametrize(
    ("operation", "body", "part"),
    [(*sent, "offer") for held in NO_PRODUCTS for sent in bodies(room([product(), held]))]
    + [(*sent, "room_stay") for held in NO_ROOMS for sent in bodies(room(), held)],
)
def test_a_value_in_place_of_a_product_or_room_is_a_reject_of_its_property(lake, operation, body, part):
    assert read_rooms(lake, operation, body) == (("offered", None, 1), [(part, 1)])


@pytest.mark.parametrize(
    ("operation", "body", "part", "code"),
    [(*sent, "offer", held.get("errorCode")) for held in NO_PRODUCTS for sent in bodies(room([held]))]
    + [(*sent, "room_stay", 500 if "500" in str(held) else None) for held in NO_ROOMS for sent in bodies(held)],
)
def test_a_property_with_nothing_but_errors_has_failed_with_their_code(lake, operation, body, part, code):
    assert read_rooms(lake, operation, body) == (("failed", code, 0), [(part, 1)])


@pytest.mark.parametrize(("operation", "body"), bodies(room(), room(None) | {"products": None}, room([])))
def test_a_room_may_have_nothing_on_sale(lake, operation, body):
    assert read_rooms(lake, operation, body) == (("offered", None, 1), [])


@pytest.mark.parametrize(("operation", "body"), bodies(room([product(error="a promotion was left out")])))
def test_a_product_with_a_price_is_one_whatever_else_it_says(lake, operation, body):
    assert read_rooms(lake, operation, body) == (("offered", None, 1), [])


BESIDE = [
    {"errors": [ERROR]}, {"error": "timeout"}, {"errors": [{"code": 1023}]}, {"status": 503}, {"partial": True},
    {"meta": {"errorCode": 500}}, {"Exception": {"message": "x"}},
]  # fmt: skip


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("level", ["property", "room_stay"])
def test_an_error_beside_what_is_on_sale_keeps_it_and_is_a_reject_so_that_nothing_else_is_gone(lake, beside, level):
    good = [room(), room(roomId=8)]
    rooms = good if level == "property" else [good[0], good[1] | beside]
    held = hotel(1, rooms) | (beside if level == "property" else {})
    for operation, body in ((Operation.MULTI, answer(held)), (Operation.SINGLE, {"property": held})):
        tables = normalised(
            Lake(str(lake.root / operation)), [record(body=body, property_ids=(1,), operation=operation)], operation
        )
        assert cells_of(tables)[1] == ("offered", None, 2)
        (reject,) = tables["reject"].to_pylist()
        assert (reject["part"], reject["property_id"]) == (level, 1)
        assert reject["reason"].startswith("names an error beside its ")


@pytest.mark.parametrize(
    "beside", [{"errors": []}, {"error": None}, {"traceId": "500"}, {"status": "ok"}, {"note": "an error"}]
)
@pytest.mark.parametrize("level", ["property", "room_stay"])
def test_what_is_no_error_beside_what_is_on_sale_is_drift_alone(lake, beside, level):
    held = hotel(1) | beside if level == "property" else hotel(1, [room(**beside)])
    tables = normalised(lake, [record(body=answer(held), property_ids=(1,))])
    assert (cells_of(tables)[1], tables["reject"].num_rows) == (("offered", None, 1), 0)
    assert tables["drift"].num_rows


@pytest.mark.parametrize(
    ("errors", "is_doubtful"),
    [
        ([ERROR], True), ([{"code": 1027}], True), ([{"code": 1999}], True), (["out of order"], True),
        ([{"code": 1023}], False), ([{"errorCode": 1025}], False), ([], False),
    ],
)  # fmt: skip
def test_an_answer_with_offers_beside_an_error_says_so_of_its_search(lake, errors, is_doubtful):
    tables = normalised(lake, [record(body=answer(hotel(1), hotel(2), errors=errors))])
    assert set(cells_of(tables).values()) == {("offered", None, 1)}
    (search,) = tables["search"].to_pylist()
    assert (search["outcome"], bool(search["failure"])) == ("answered", is_doubtful)


@pytest.mark.parametrize("odd", [{}, {"odd": 1}])
def test_room_stays_that_come_twice_do_not_hide_what_is_on_sale(lake, odd):
    body = json.dumps(answer(hotel(1), hotel(2), **odd)).encode()
    end = body.index(b'}, {"propertyId": 2')
    twice = body[:end] + b', "roomStays": []' + body[end:]
    tables = normalised(lake, [record(body=twice)])
    assert cells_of(tables) == {1: ("failed", None, 0), 2: ("offered", None, 1)}
    assert [(row["part"], row["reason"]) for row in tables["reject"].to_pylist()] == [
        ("property", "properties[] has roomStays twice")
    ]


def twice(text, name, other):
    """A body with a field written twice, the second time with another value."""
    begin = text.index(f'"{name}": ')
    return (text[:begin] + f'"{name}": {other}, ' + text[begin:]).encode()


@pytest.mark.parametrize("odd", [{}, {"odd": 1}])
@pytest.mark.parametrize(
    ("name", "other", "part"),
    [
        ("total", "99.5", "offer"),
        ("minSellablePrice", "1", "offer"),
        ("charges", '{"total": 7}', "offer"),
        ("boardBasis", '{"id": 3}', "offer"),
        ("detail", '"x"', "offer"),
        ("penaltyNights", "7", "offer"),
        ("promoType", '"x"', "offer"),
        ("productId", "901", "offer"),
        ("products", "[]", "room_stay"),
        ("roomId", "12", "room_stay"),
        ("propertyId", "2", "property"),
        ("currencyCode", '"USD"', "property"),
        ("roomStays", "[]", "property"),
    ],
)
def test_a_field_that_comes_twice_with_two_values_is_a_reject_with_its_reason(lake, name, other, part, odd):
    for operation, document in (
        (Operation.MULTI, answer(hotel(1), **odd)),
        (Operation.SINGLE, {"property": hotel(1)} | odd),
    ):
        body = twice(json.dumps(document), name, other)
        sent = record(body=body, property_ids=(1, 2)[: 2 if operation is Operation.MULTI else 1], operation=operation)
        tables = normalised(Lake(str(lake.root / operation)), [sent], operation)
        (reject,) = tables["reject"].to_pylist()
        assert (reject["part"], name in reject["reason"], "twice" in reject["reason"]) == (part, True, True)
        assert cells_of(tables)[1][0] == "failed"
        assert tables["offer"].num_rows == 0


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("odd", [{}, {"odd": 1}])
@pytest.mark.parametrize(
    "name",
    [
        "total", "minSellablePrice", "charges", "boardBasis", "detail", "penaltyNights", "promoType", "productId",
        "products", "roomId", "propertyId", "currencyCode", "roomStays", "cancelPenalties", "promotions",
    ],
)  # fmt: skip
def test_a_null_beside_a_value_of_the_same_field_says_nothing_before_it_and_after_it(lake, name, odd, is_first):
    for operation, document in (
        (Operation.MULTI, answer(hotel(1), **odd)),
        (Operation.SINGLE, {"property": hotel(1)} | odd),
    ):
        text = json.dumps(document)
        asked = (1, 2)[: 2 if operation is Operation.MULTI else 1]
        tables = []
        for body in (text, null_beside(text, name, is_first=is_first)):
            own = Lake(str(lake.root / operation / str(len(tables))))
            sent = record(body=body.encode(), property_ids=asked, operation=operation)
            tables.append(normalised(own, [sent], operation))
        for table in ("cell", "offer", "penalty", "promotion", "reject"):
            clean, given = ([without_addresses(row) for row in each[table].to_pylist()] for each in tables)
            assert given == clean, table


def null_beside(text, name, *, is_first):
    """A body with a field written twice, with null and with its value."""
    begin = text.index(f'"{name}": ')
    _, length = json.JSONDecoder().raw_decode(text[begin + len(name) + 4 :])
    end = begin + len(name) + 4 + length
    null = f'"{name}": null'
    return f"{text[:begin]}{null}, {text[begin:]}" if is_first else f"{text[:end]}, {null}{text[end:]}"


def without_addresses(row):
    """A row without what says from where it was read."""
    return {name: held for name, held in row.items() if not name.startswith(("raw_", "body_"))}


@pytest.mark.parametrize(
    ("spelt", "name"),
    [
        ('"roomStays" :', "Room"),
        ('"roomStays"\n\t :', "Room"),
        ('"roomStays"' + 50 * " " + ":", "Room"),
        ('"roomStays":', r"\u0022: a name"),
        ('"roomStays":', r"\u003a a name"),
        ('"roomStays":', r"\":null"),
        ('"roomStays":', r"\": null"),
    ],
)
def test_no_way_to_write_a_name_or_a_text_hides_a_field_that_comes_twice(lake, spelt, name):
    """Names are counted: what is counted once too often must not make up for what is read once too few."""
    text = json.dumps(answer(hotel(1, [room(roomName="?")]), hotel(2)))
    body = text.replace('"roomStays":', spelt, 1).replace('"?"', f'"{name}"', 1)
    tables = normalised(lake, [record(body=twice(body, "total", "99.5"))])
    assert cells_of(tables) == {1: ("failed", None, 0), 2: ("offered", None, 1)}
    (reject,) = tables["reject"].to_pylist()
    assert "has total twice" in reject["reason"]


@pytest.mark.parametrize("style", [(",", ":"), (", ", ": "), (" , ", " : ")])
def test_a_field_that_comes_twice_with_one_value_costs_nothing(lake, style):
    text = json.dumps(answer(hotel(1), hotel(2)), separators=style)
    name = '"total"' + style[1]
    body = text.replace(name, f"{name}100.5{style[0]}{name}").encode()
    tables = normalised(lake, [record(body=body)])
    assert cells_of(tables) == dict.fromkeys((1, 2), ("offered", None, 1))
    assert tables["reject"].num_rows == 0


@pytest.mark.parametrize("text", [": ten percent off", " : ten", ":)", ':null, ":', 'ten": off'])
def test_a_text_that_looks_like_the_end_of_a_name_costs_nothing(lake, text):
    offer = product(
        boardBasis={"id": 14, "name": text, "detail": text}, promotions=[{"promoType": text, "description": text}]
    )
    tables = normalised(lake, [record(body=answer(hotel(1, [room([offer], roomName=text)]), hotel(2)))])
    assert cells_of(tables) == dict.fromkeys((1, 2), ("offered", None, 1))
    assert tables["reject"].num_rows == 0


@pytest.mark.parametrize("style", [(",", ":"), (", ", ": "), (" , ", " : ")])
@pytest.mark.parametrize("is_bare", [False, True])
def test_a_clean_answer_is_read_once_however_it_is_spelt(style, is_bare, monkeypatch):
    def never(*_, **__):
        raise AssertionError

    monkeypatch.setattr("pipeline.normalise.tolerant.read", never)
    nothing = {"charges": None, "boardBasis": None, "promotions": None, "cancelPenalties": None}
    bare = hotel(3, [room([product(**nothing)], roomName=None), {"id": 1, "roomId": 8}], currencyCode=None)
    words = hotel(2, [room(roomName='a "quoted": name'), room([], rateType="")])
    hotels = [hotel(1), words, *([bare] if is_bare else [])]
    for operation, document in (
        (Operation.MULTI, answer(*hotels, errors=[{"code": 1023, "message": "x"}])),
        (Operation.SINGLE, {"property": hotels[-1] | {"propertyName": "x"}}),
    ):
        asked = frozenset({1, 2, 3} if operation is Operation.MULTI else {hotels[-1]["propertyId"]})
        body = json.dumps(document, separators=style).encode()
        assert not read_answer(body, operation, asked, Interned()).refusals


def test_replayed_with_what_was_asked_again_each_property_has_one_cell():
    records = [
        record(body=answer(hotel(1), errors=[{"errorCode": 500}]), property_ids=(1, 2, 3)),
        record(body=answer(hotel(2)), property_ids=(2,), node=2),
        record(body={"errors": [{"code": 1025}]}, property_ids=(3,), node=3),
    ]
    addressed = [(f"raw/x#{number}", each) for number, each in enumerate(records)]
    tables = rows_of_answers(SWEEP, Operation.MULTI, "GB", addressed, 10**6)
    assert cells_of(tables) == {1: ("offered", None, 1), 2: ("offered", None, 1), 3: ("no_offer", 1025, 0)}


NAMELESS = hotel(9) | {"propertyId": None}


@pytest.mark.parametrize(
    ("listed", "asked", "again"),
    [
        ([hotel(1), NAMELESS], (1, 2, 3), (2, 3)),
        ([hotel(1), hotel(2, rooms=[]), NAMELESS], (1, 2, 3), (3,)),
        # Whatever it is, it may be a property: an unknown field keeps the answer from being read the strict way.
        ([hotel(1) | {"new": 1}, NAMELESS], (1, 2, 3), (2, 3)),
        ([hotel(1), hotel(2), hotel(3), NAMELESS], (1, 2, 3), ()),
        ([hotel(1)], (1, 2, 3), ()),
        ([NAMELESS], (1,), ()),
        ([NAMELESS, NAMELESS], (1,), ()),
    ],
)
def test_properties_that_a_part_without_an_id_may_be_are_in_doubt(listed, asked, again):
    body = json.dumps(answer(*listed)).encode()
    assert unanswered(body, "", Operation.MULTI, asked, 10**6) == again


@pytest.mark.parametrize("more", [{}, {"new": 1}])
def test_a_list_answer_about_one_property_needs_no_id(more):
    tables = rows_of_answers(
        SWEEP, Operation.MULTI, "GB", [("raw/x#0", record(body=answer(NAMELESS | more), property_ids=(4,)))], 10**6
    )
    assert cells_of(tables) == {4: ("offered", None, 1)}
    assert "reject" not in tables


def test_a_part_without_an_id_is_no_reject_where_what_it_may_be_was_asked_again():
    first = record(body=answer(hotel(1), NAMELESS), property_ids=(1, 2, 3))
    again = [
        record(body=answer(NAMELESS), property_ids=(2,), node=2),
        record(body={"errors": [{"code": 1025}]}, property_ids=(3,), node=3),
    ]
    alone = rows_of_answers(SWEEP, Operation.MULTI, "GB", [("raw/x#0", first)], 10**6)
    assert cells_of(alone) == {1: ("offered", None, 1), 2: ("absent", None, 0), 3: ("absent", None, 0)}
    assert alone["reject"].num_rows == 1
    addressed = [(f"raw/x#{number}", each) for number, each in enumerate([first, *again])]
    tables = rows_of_answers(SWEEP, Operation.MULTI, "GB", addressed, 10**6)
    assert cells_of(tables) == {1: ("offered", None, 1), 2: ("offered", None, 1), 3: ("no_offer", 1025, 0)}
    assert "reject" not in tables


def is_utf16(body, encoding):
    plain = gzip.decompress(body) if encoding else body
    return plain.startswith((b"\xff\xfe", b"\xfe\xff"))
