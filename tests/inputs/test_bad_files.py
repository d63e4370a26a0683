"""Mistakes in a user's file are reported with row, column and reason."""

from __future__ import annotations

import io
import zipfile
from contextlib import suppress
from zoneinfo import available_timezones

import duckdb
import polars as pl
import pytest

from pipeline.domain.errors import InputError
from pipeline.inputs.kinds import TIME_ZONE
from pipeline.inputs.load import KINDS, rows_of_file

HEADER = "property_id,market,product_type,check_in,nights,party,currency,price,observed_at,room_id"
GOOD = "7,GB,Hotel,2030-03-01,2,2,EUR,120.50,2030-01-01T02:30:00Z,"
NO_RATES = pl.DataFrame(schema={"rate_date": pl.Date, "currency": pl.String})
MAP = "property-map"
RATES = "Date,USD,SEK,\n2026-11-20,1.09,11.25,\n"


def read(kind, data, file_name, rates=None):
    return rows_of_file(KINDS[kind], data, file_name, rates)


def prices(*lines, header=HEADER, rates=NO_RATES):
    return read("prices", "\n".join((header, *lines)).encode(), "prices.csv", rates)


def with_cell(column, value):
    cells = GOOD.split(",")
    cells[HEADER.split(",").index(column)] = value
    return ",".join(cells)


def reported(read, *args):
    with pytest.raises(InputError) as refused:
        read(*args)
    assert refused.value.kept == "Nothing was loaded."
    return refused.value.message


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_another_separator_is_read_and_a_decimal_comma_refused(mark):
    """Spreadsheets write semicolons in countries that write a decimal comma."""
    header, line = (text.replace(",", mark) for text in (HEADER, GOOD))
    assert prices(line, header=header).equals(prices(GOOD))
    assert "row 2, column price: '120,50' is not an amount above 0 with up to 4 decimals and a point" in reported(
        lambda: prices(line.replace("120.50", "120,50"), header=header)
    )


def test_a_text_of_a_file_with_semicolons_may_hold_commas_and_quoted_semicolons():
    (row,) = read("properties", b'property_id;property_name\n7;"Hotel Adler, Ulm; S\xc3\xbcd"\n', "p.csv").rows(
        named=True
    )
    assert row["property_name"] == "Hotel Adler, Ulm; Süd"


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("property_id", "7.5", "is not a whole number"),
        ("property_id", "9223372036854775808", "is not a whole number"),
        ("property_id", "", "it is empty"),
        ("market", "UK", "is not one of the 36 market codes"),
        ("product_type", "hotel", "is not `Hotel` or `Package`"),
        ("check_in", "01/03/2030", "is not a date written yyyy-MM-dd"),
        ("check_in", "2030-02-30", "is not a date written yyyy-MM-dd"),
        ("check_in", "0000-01-01", "is not a date written yyyy-MM-dd"),
        ("observed_at", "0000-01-01T00:00:00Z", "is not an instant with its offset"),
        ("nights", "0", "is not a number of nights"),
        ("party", "2c", "is not a party"),
        ("currency", "eur", "is not an ISO 4217 code"),
        ("price", "120,5".replace(",", ";"), "is not an amount above 0"),
        ("price", "0", "is not an amount above 0"),
        ("price", "0.00001", "is not an amount above 0"),
        ("price", "1e3", "is not an amount above 0"),
        ("observed_at", "2030-01-01T02:30:00", "is not an instant with its offset"),
        ("room_id", "king", "is not a whole number"),
    ],
)
def test_a_bad_cell_is_reported_with_its_row_column_and_reason(column, value, reason):
    message = reported(prices, GOOD, with_cell(column, value))
    assert f"row 3, column {column}: " in message
    assert reason in message


def test_rows_are_counted_as_a_spreadsheet_does_blank_lines_included():
    assert "row 4, column market" in reported(prices, GOOD, "", with_cell("market", "UK"))


def test_an_unknown_and_a_missing_column_are_reported_with_what_is_known():
    message = reported(lambda: prices(GOOD, header=HEADER.replace("room_id", "rooom_id").replace("party", "guests")))
    assert "row 1, column rooom_id: it is unknown; did you mean room_id? Known columns: property_id, market" in message
    assert "row 1, column party: the column is missing" in message


def test_a_column_that_is_named_twice_is_refused():
    assert "row 1, column market: the header names it twice" in reported(
        lambda: prices(GOOD, header=HEADER.replace("room_id", "market"))
    )


def test_a_repeated_key_names_both_rows_and_the_columns_that_are_given():
    key = "property_id, market, product_type, check_in, nights, party, currency, observed_at"
    assert f"row 3, columns {key}: the same key as row 2" in reported(prices, GOOD, with_cell("price", "99"))


def test_a_repeated_key_is_reported_in_one_pass_with_all_other_faults():
    message = reported(
        prices, GOOD, with_cell("price", "-1"), with_cell("check_in", "soon"), with_cell("room_id", "king")
    )
    for expected in (
        "row 3, column price",
        "row 3, columns property_id",
        "row 4, column check_in",
        "row 5, column room_id",
    ):
        assert expected in message
    # What could not be read is not taken for what was not given.
    assert message.count("the same key") == 1
    weights = b"property_id,market,weight\n7,,1\n7,,x\n,GB,1\n,GB,2\nking,,1\n"
    message = reported(read, "weights", weights, "weights.csv")
    for expected in (
        "row 3, column property_id: the same property as row 2",
        "row 3, column weight",
        "row 5, column market: the same market as row 4",
        "row 6, column property_id: 'king' is not a whole number",
    ):
        assert expected in message
    assert "one of the two" not in message


def test_a_line_with_too_few_or_too_many_cells_is_not_filled_up():
    message = reported(prices, "7,GB", GOOD + ",8")
    assert "row 2: 2 cells, where the header has 10" in message
    assert "row 3: more than the 10 cells of the header" in message


def test_all_faults_are_reported_at_once_and_many_are_counted():
    message = reported(prices, *[with_cell("check_in", f"{number}.3.2030") for number in range(1, 31)])
    assert message.count("column check_in") == 20
    assert "… and 10 more" in message


def test_prices_before_any_rates_are_refused_with_the_command_that_loads_rates():
    with pytest.raises(InputError) as refused:
        prices(with_cell("currency", "SEK"))
    assert refused.value.hint.startswith("Load reference rates first: nightaudit load rates FILE\n")
    with pytest.raises(InputError) as refused:
        prices(with_cell("market", "UK"))
    assert "rates" not in refused.value.hint


def test_a_currency_needs_a_rate_of_the_day_or_the_week_before():
    rates = pl.DataFrame({"rate_date": ["2029-12-28"], "currency": ["SEK"]}).with_columns(
        pl.col("rate_date").str.to_date()
    )
    in_sek = with_cell("currency", "SEK")
    assert prices(in_sek, rates=rates).height == 1
    late = in_sek.replace("2030-01-01T", "2030-01-05T")
    assert "row 2, column currency: no reference rate of SEK" in reported(lambda: prices(late, rates=rates))
    assert "no reference rate of SEK" in reported(lambda: prices(in_sek))
    assert prices(GOOD).height == 1


@pytest.mark.parametrize(
    ("data", "reason"), [(b"", "empty"), (b"\xff\xfea\0", "row 1 on it is UTF-16"), (b'a,"b\n', "row")]
)
def test_what_is_no_csv_is_refused(data, reason):
    assert reason in reported(read, MAP, data, "map.csv")


def test_what_is_not_utf_8_is_reported_with_its_row_and_column():
    data = f"{HEADER},channel\n{GOOD},a\n{GOOD},caf\xe9".encode("cp1252")
    assert "row 3, column channel: byte 0xE9 is not UTF-8" in reported(read, "prices", data, "prices.csv")
    assert "row 1, column number 2: byte 0xE9" in reported(read, MAP, b"branded_id,\xe9\n1,2\n", "map.csv")


@pytest.mark.parametrize("name", ["line_no", "refused"])
def test_a_column_with_a_reserved_name_is_reported(name):
    assert f"row 1, column {name}: this name is reserved" in reported(
        read, "property-map", f"branded_id,{name}\n1,2\n".encode(), "map.csv"
    )
    sink = io.BytesIO()
    pl.DataFrame({"branded_id": [1], "unbranded_id": [2], name: [3]}).write_parquet(sink)
    assert f"row 1, column {name}: this name is reserved" in reported(read, MAP, sink.getvalue(), "map.parquet")
    assert f"row 1, column {name}" in reported(read, "rates", RATES.replace("SEK", name).encode(), "rates.csv")


def test_a_weight_is_finite():
    data = f"market,weight\nGB,{400 * '9'}\n".encode()
    assert "row 2, column weight" in reported(read, "weights", data, "weights.csv")


def test_what_is_no_parquet_is_refused():
    assert "it is not Parquet" in reported(read, MAP, b"PAR", "map.parquet")


def test_parquet_is_read_like_csv_whatever_its_types():
    frame = pl.DataFrame({"branded_id": [1, 2**60 + 1], "unbranded_id": ["3", "x"]})
    sink = io.BytesIO()
    frame.write_parquet(sink)
    assert "row 3, column unbranded_id: 'x' is not a whole number" in reported(
        read, "property-map", sink.getvalue(), "map.parquet"
    )
    sink = io.BytesIO()
    frame.with_columns(unbranded_id=pl.Series([3.0, 4.0])).write_parquet(sink)
    assert read(MAP, sink.getvalue(), "map.parquet")["branded_id"].to_list() == [1, 2**60 + 1]


@pytest.mark.parametrize(
    ("kind", "highest", "written", "shown"),
    [
        (pl.Float64, 2**53 - 1, 2**53, "9007199254740992.0"),
        (pl.Float32, 2**24 - 1, 123456789, "123456790.0"),
        (pl.Float16, 2**11 - 1, 5003, "5004.0"),
    ],
)
def test_an_id_that_a_float_cannot_hold_is_refused_and_not_rounded(kind, highest, written, shown):
    sink = io.BytesIO()
    ids = pl.Series([highest, written]).cast(kind)
    pl.DataFrame({"branded_id": ids, "unbranded_id": [1, 2]}).write_parquet(sink)
    said = reported(read, MAP, sink.getvalue(), "map.parquet")
    assert f"row 3, column branded_id: '{shown}' is not" in said
    assert "row 2" not in said


def test_prices_of_parquet_keep_their_instant_and_their_digits():
    frame = prices(GOOD).drop("line_no")
    sink = io.BytesIO()
    frame.write_parquet(sink)
    again = read("prices", sink.getvalue(), "prices.parquet", NO_RATES)
    assert again.drop("line_no").equals(frame)


def test_the_map_is_one_to_one_and_has_no_chains():
    message = reported(read, MAP, b"branded_id,unbranded_id\n1,2\n1,3\n4,2\n5,5\n6,7\n7,6\n", "map.csv")
    assert "row 3, column branded_id: the same id as row 2" in message
    assert "row 4, column unbranded_id: the same id as row 2" in message
    assert "row 5, column unbranded_id: 5 is mapped to itself" in message
    assert "row 6, column unbranded_id: 7 is the branded id of row 7; a map has no chains or circles" in message


def test_a_weight_is_of_a_property_or_of_a_market():
    message = reported(read, "weights", b"property_id,market,weight\n1,,2\n,GB,0\n1,GB,1\n,,1\n1,,3\n", "weights.csv")
    assert "row 4, column property_id: a weight is for a property or for a market" in message
    assert "row 5, column property_id" in message
    assert "row 6, column property_id: the same property as row 2" in message
    assert "row 2, column weight: '-1' is not a number, 0 or more" in reported(
        read, "weights", b"property_id,weight\n1,-1\n", "weights.csv"
    )


def test_the_daily_file_the_history_and_its_zip_say_the_same():
    daily = b"Date, USD, SEK, \n20 November 2026, 1.09, 11.25, \n"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("eurofxref-hist.csv", RATES)
    history = read("rates", RATES.encode(), "eurofxref-hist.csv")
    assert history.equals(read("rates", packed.getvalue(), "eurofxref-hist.zip"))
    assert history.equals(read("rates", daily, "eurofxref.csv"))
    assert [str(rate) for rate in history["rate"]] == ["11.25000000", "1.09000000"]


def test_no_rate_is_no_row_and_a_bad_one_is_reported():
    text = RATES + "2026-11-19,N/A,11.123456,\n"
    assert read("rates", text.encode(), "hist.csv").height == 3
    message = reported(read, "rates", (text + "19.11.2026,1,1\n2026-11-20,-1,one,\n").encode(), "hist.csv")
    assert "row 4, column Date: '19.11.2026' is not a date" in message
    assert "row 5, column Date: the same day as row 2" in message
    assert "row 5, column USD: '-1' is not a rate above 0" in message
    assert "row 5, column SEK: 'one' is not a rate above 0" in message


def test_the_history_names_currencies_that_the_euro_or_a_new_unit_has_replaced():
    history = b"Date,USD,CYP,EEK,LTL,LVL,MTL,ROL,SIT,SKK,TRL\n" + b"2001-11-20,1,1,1,1,1,1,1,1,1,1\n"
    assert read("rates", history, "eurofxref-hist.csv").height == 10


def test_rates_of_other_columns_or_archives_are_refused():
    assert "row 1, column Kurs: it is unknown" in reported(read, "rates", b"Date,Kurs\n2026-11-20,1\n", "hist.csv")
    assert "row 1, column XXX: it is unknown" in reported(read, "rates", b"Date,USD,XXX\n2026-11-20,1,1\n", "hist.csv")
    assert "row 1, column Date: it is missing" in reported(read, "rates", b"Day,USD\n2026-11-20,1\n", "hist.csv")
    assert "cannot be loaded" in reported(read, "rates", b"PK\x03\x04rubbish", "hist.zip")
    empty = io.BytesIO()
    with zipfile.ZipFile(empty, "w"):
        pass
    assert "not a zip with one CSV" in reported(read, "rates", empty.getvalue(), "hist.zip")


def test_a_long_first_cell_that_is_not_utf_8_is_reported():
    assert "not UTF-8" in reported(read, MAP, b"a" * 140_000 + b"\xe9,b\n", "map.csv")


def test_a_damaged_archive_is_reported():
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rates.csv", "Date,USD\n2029-12-28,1.1\n" * 50)
    data = bytearray(made.getvalue())
    # Its data begins after the header of 30 bytes and the name: 0xFF is no kind of block.
    data[39:49] = b"\xff" * 10
    assert "cannot be loaded" in reported(read, "rates", bytes(data), "rates.zip")


def test_a_property_is_listed_once_at_a_place_that_exists():
    header = b"property_id,stars,latitude,longitude\n"
    message = reported(read, "properties", header + b"1,8,,\n1,,91,0\n2,,,181\n3,,5,\n,4,,\n", "p.csv")
    for expected in (
        "row 2, column stars: '8' is not a number of stars",
        "row 3, column property_id: the same id as row 2",
        "row 3, column latitude: '91' is not degrees from -90 to 90",
        "row 4, column longitude: '181' is not degrees from -180 to 180",
        "row 5, column latitude: give both latitude and longitude",
        "row 6, column property_id: it is empty",
    ):
        assert expected in message
    assert message.count("column latitude") == 2
    assert read("properties", header + b"9007199254740995,4.5,-12.5,0\n", "p.csv").row(0)[1:] == (
        9007199254740995,
        *(None, None, None),
        4.5,
        *(None, None),
        -12.5,
        0.0,
        *(None, None, None),
    )


def test_a_time_of_check_in_and_a_time_zone_are_ones_that_exist():
    header = b"property_id,check_in_time,time_zone\n"
    message = reported(read, "properties", header + b"1,24:00,\n2,3 pm,UTC\n3,15:00,Stockholm\n4,,localtime\n", "p.csv")
    for expected in (
        "row 2, column check_in_time: '24:00' is not a time of day",
        "row 3, column check_in_time: '3 pm' is not a time of day",
        "row 4, column time_zone: 'Stockholm' is not a time zone",
        "row 5, column time_zone: 'localtime' is not a time zone",
    ):
        assert expected in message
    assert read("properties", header + b"1,00:30,Europe/Stockholm\n", "p.csv").row(0)[-2:] == (
        "00:30",
        "Europe/Stockholm",
    )


def test_the_database_knows_every_time_zone_that_a_file_may_name():
    zones = pl.DataFrame({"zone": sorted(available_timezones())}).select(TIME_ZONE.parse(pl.col("zone")))["zone"]
    with duckdb.connect(":memory:") as session:
        for zone in zones.drop_nulls():
            session.execute("SELECT TIMESTAMP '2030-06-01 15:00' AT TIME ZONE ?", [zone]).fetchall()
    assert zones.null_count() <= 1


@pytest.mark.parametrize("line", [with_cell("party", "2" * 100_000), with_cell("market", "G" * 100_000)])
def test_a_message_repeats_no_long_text_of_the_file(line):
    assert len(reported(prices, line)) < 1_000
    assert len(reported(lambda: prices(line, header=f"{HEADER},{'a' * 100_000}"))) < 10_000


@pytest.mark.parametrize("kind", ["weights", "prices"])
def test_a_file_with_very_many_columns_is_refused_at_once(kind):
    header = ",".join(f"c{number}" for number in range(1_000_000))
    assert "it has 1,000,000 columns" in reported(read, kind, header.encode(), f"{kind}.csv")


def test_few_bytes_that_stand_for_very_many_rows_are_refused_before_they_are_read():
    file = io.BytesIO()
    pl.DataFrame({"property_id": [1], "weight": [1.0]}).select(pl.all().repeat_by(10_000_001).explode()).write_parquet(
        file
    )
    assert len(file.getvalue()) < 1_000_000
    assert "it has 10,000,001 rows" in reported(read, "weights", file.getvalue(), "weights.parquet")


def test_parquet_with_any_byte_changed_is_read_or_refused():
    file = io.BytesIO()
    pl.DataFrame({"property_id": range(1, 400), "market": None, "weight": 1.0}).write_parquet(file)
    for place in range(0, len(file.getvalue()), 7):
        damaged = bytearray(file.getvalue())
        damaged[place] ^= 0xFF
        with suppress(InputError):
            read("weights", bytes(damaged), "weights.parquet")
