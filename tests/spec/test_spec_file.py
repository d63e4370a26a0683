import os
from datetime import date
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.domain.errors import SpecError
from pipeline.domain.search import Operation, ProductType
from pipeline.spec import SAMPLE_SPEC, parse_spec, read_spec, resolve_properties
from pipeline.spec.model import Properties
from pipeline.spec.values import Anchor

TODAY = date(2027, 1, 4)

GOOD = """\
[properties]
ids = [100001, 100002]
[stays]
nights = [1, 3, 7]
check_in = ["2027-03-01", "2027-03-02"]
[[stays.horizon]]
to_days = 30
[[stays.horizon]]
to_days = 90
every_days = 3
[ask]
markets = ["GB", "NO"]
parties = ["2", "2c5-9"]
product_types = ["Hotel", "Package"]
currencies = ["EUR"]
currency_by_market = { GB = "GBP" }
operations = ["multi", "single"]
batch = 50
"""

SAME_IN_YAML = """\
properties:
  ids: [100001, 100002]
stays:
  nights: [1, 3, 7]
  check_in: [2027-03-01, "2027-03-02"]
  horizon:
    - {to_days: 30}
    - to_days: 90
      every_days: 3
ask:
  markets: [GB, NO]
  parties: [2, 2c5-9]
  product_types:
    - Hotel
    - Package
  currencies: [EUR]
  currency_by_market: {GB: GBP}
  operations: [multi, single]
  batch: 50
"""


def refusal(text, name="sweep.toml"):
    with pytest.raises(SpecError) as refused:
        parse_spec(text, Path(name), TODAY)
    assert refused.value.exit_code == 2
    assert refused.value.kept == "Nothing was started."
    return refused.value.message.splitlines()[1:]


def test_a_good_spec_is_read():
    spec = parse_spec(GOOD, Path("sweep.toml"), TODAY)
    assert spec.ask.markets == ("GB", "NO")
    assert [str(party) for party in spec.ask.parties] == ["2", "2c5-9"]
    assert spec.ask.currencies_of("GB") == ("GBP",)
    assert spec.ask.currencies_of("NO") == ("EUR",)
    assert spec.stays.check_in == (date(2027, 3, 1), date(2027, 3, 2))


def test_yaml_has_the_same_keys_and_norway_stays_a_market():
    assert parse_spec(SAME_IN_YAML, Path("sweep.yaml"), TODAY) == parse_spec(GOOD, Path("sweep.toml"), TODAY)


def test_what_is_omitted_has_a_plain_default():
    spec = parse_spec(
        "[properties]\nids = [1]\n[stays]\nnights = [1]\ncheck_in = [2027-03-01]\n"
        '[ask]\nmarkets = "all"\nparties = [2]\n',
        Path("sweep.toml"),
    )
    assert len(spec.ask.markets) == 36
    assert spec.ask.product_types == (ProductType.HOTEL,)
    assert spec.ask.operations == (Operation.MULTI,)
    assert spec.ask.currencies_of("GB") == (None,)
    assert (spec.ask.batch, spec.stays.anchor) == (100, Anchor.LEAD_DAYS)


MISTAKES = {
    "a mistyped key": ("markets =", "marketz =", 12, "ask.marketz: unknown key; did you mean `markets`?"),
    "a mistyped table": ("[ask]", "[asks]", 11, "asks: unknown key; did you mean `ask`?"),
    "a key of another table": ("batch = 50", "nights = [1]", 18, "it belongs to [stays]. Allowed here: markets,"),
    "an unknown market": ('"NO"]', '"NOR"]', 12, "ask.markets[2]: 'NOR' is not a market."),
    "a country's other name": ('"NO"]', '"UK"]', 12, "did you mean `GB`?"),
    "a market in small letters": ('"NO"]', '"no"]', 12, "did you mean `NO`?"),
    "a market twice": ('"NO"]', '"GB"]', 12, "ask.markets[2]: GB is given twice (items 1 and 2)"),
    "a market outside a list": ('["GB", "NO"]', '"GB"', 12, "ask.markets: must be a list, in square brackets"),
    "no market": ('["GB", "NO"]', "[]", 12, "ask.markets: must not be empty"),
    "a mistyped product type": ('"Package"]', '"Packages"]', 14, "did you mean `Package`? Allowed: Hotel, Package."),
    "a quote": ('"single"]', '"quote"]', 17, "ask.operations[2]: 'quote' is not an operation of a sweep"),
    "a currency in small letters": ('"EUR"]', '"eur"]', 15, "did you mean `EUR`?"),
    "an unknown currency": (
        '"EUR"]', '"GPB"]', 15, "ask.currencies[1]: 'GPB' is not a currency of ISO 4217; did you mean `GBP`?"
    ),
    "a currency that begins like a common one": ('"EUR"]', '"EUX"]', 15, "did you mean `EUR`?"),
    "a currency as much like two": ('"EUR"]', '"USX"]', 15, "did you mean `USD`?"),
    "a currency's sign": ('"EUR"]', '"€"]', 15, "ask.currencies[1]: '€' is not a currency"),
    "a currency of a market not asked": ("{ GB", "{ SE", 11, "currency_by_market names markets that `markets` does"),
    "a currency of no market": ("{ GB", "{ XX", 16, "ask.currency_by_market.XX: 'XX' is not a market"),
    "101 properties a search": ("batch = 50", "batch = 101", 18, "must be at most 100, not 101"),
    "a batch in quotes": ("batch = 50", 'batch = "50"', 18, "ask.batch: must be a whole number, not '50'"),
    "a true number": ("batch = 50", "batch = true", 18, "ask.batch: must be a whole number, not True"),
    "singles without single": (
        'operations = ["multi", "single"]', "single_properties = 3", 11, 'operations does not name "single"'),
    "a party of ten": ('"2c5-9"]', '"10"]', 13, "ask.parties[2]: party '10': '10' is not a room"),
    "a child of nineteen": ('"2c5-9"]', '"2c19"]', 13, "19 is not the age of a child"),
    "a party twice": ('["2", "2c5-9"]', '["2c9-5", "2c5-9"]', 13, "ask.parties[2]: 2c5-9 is given twice"),
    "a party that is a fraction": ('"2c5-9"]', "2.5]", 13, "ask.parties[2]: 2.5 is not a party"),
    "an id twice": ("100002]", "100001]", 2, "properties.ids[2]: 100001 is given twice"),
    "an id beyond 64 bits": ("100002]", "9223372036854775808]", 2, "properties.ids[2]: must be at most"),
    "an id of zero": ("100002]", "0]", 2, "properties.ids[2]: must be at least 1, not 0"),
    "an id in quotes": ("100002]", '"100002"]', 2, "properties.ids[2]: must be a whole number, not '100002'"),
    "two sources of ids": ("[stays]", "sandbox = 3\n[stays]", 1, "ids and sandbox are given"),
    "no source of ids": ("ids = [100001, 100002]", "", 1, "give exactly one of ids, file, query, sandbox: none is"),
    "no nights": ("[1, 3, 7]", "[]", 4, "stays.nights: must not be empty"),
    "nights missing": ("nights = [1, 3, 7]", "", 3, "stays.nights: is missing. Lengths of stay, in nights."),
    "nights below one": ("[1, 3, 7]", "[1, 0]", 4, "stays.nights[2]: must be at least 1, not 0"),
    "a horizon of today": ("to_days = 30", "to_days = 0", 7, "stays.horizon[1].to_days: must be at least 1"),
    "horizons out of order": ("to_days = 90", "to_days = 20", 8, "to_days 20 is not after the 30 of the horizon"),
    "a horizon without a day": ("every_days = 3", "every_days = 61", 8, "every_days 61 is more than the 60 days"),
    "no check-in at all": (
        GOOD[GOOD.index("check_in"):GOOD.index("[ask]")], "", 3, "give at least one [[stays.horizon]] or the list"),
    "an unknown anchor": ("[[stays.horizon]]\nto_days = 30", 'anchor = "date"\n[[stays.horizon]]\nto_days = 30', 6,
        "stays.anchor: 'date' is not an anchor"),
    "a date beyond reach": ('"2027-03-02"]', '"2127-03-02"]', 5, "is more than 1095 days after the snapshot date"),
    "a day that is not": ('"2027-03-02"]', '"2027-02-30"]', 5, "'2027-02-30' is not a day of the calendar"),
    "a date in another order": ('"2027-03-02"]', '"02/03/2027"]', 5, "'02/03/2027' is not a date: write it as yyyy-MM"),
    "a date with a time": ('"2027-03-02"]', "2027-03-02T10:00:00]", 5, "is not a date: write it as yyyy-MM-dd"),
}  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "line", "said"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_reported_with_its_line_and_what_is_allowed(right, wrong, line, said):
    assert GOOD.count(right) >= 1
    reported = refusal(GOOD.replace(right, wrong, 1))
    assert any(each.startswith(f"  sweep.toml:{line}: ") and said in each for each in reported), reported


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_file():
    wrong = GOOD.replace("100002]", "-1]").replace("to_days = 30", "to_days = -1").replace('"NO"]', '"XX"]')
    assert [each.split(":")[1] for each in refusal(wrong)] == ["2", "7", "12"]


def test_mistakes_of_yaml_have_lines_too():
    wrong = SAME_IN_YAML.replace("every_days: 3", "every_dayz: 3").replace("NO]", "'XX']").replace("Package", "Pack")
    assert [each.split(":")[1] for each in refusal(wrong, "sweep.yml")] == ["9", "11", "15"]


def test_a_thousand_mistakes_are_summed_up():
    reported = refusal(GOOD.replace("[100001, 100002]", str([-1] * 1000)).replace("batch", "bach"))
    assert len(reported) == 21
    assert any("did you mean `batch`?" in each for each in reported)
    assert reported[-1] == "  and 981 more"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("[ask]\n", "[ask]\n{} = 1\n"),
        ("[ask]\n", "[ask]\n'{}'.b = 1\n"),
        ("[ask]\n", "[ask]\nbatch = '{}'\n"),
        ("[ask]\n", "[ask]\ncurrencies = ['{}']\n"),
        ("[ask]\n", "[ask]\ncurrency_by_market = {{ '{}' = 'EUR' }}\n"),
        ("[ask]\n", "[{}]\n[{}]\n[ask]\n"),
        ("parties =", "parties = ['{}'] #"),
        ("parties =", "parties = ['2c{}'] #"),
        ("markets =", "markets = ['{}'] #"),
        ("product_types =", "product_types = ['{}'] #"),
        ("nights =", "check_in = ['{}']\nnights ="),
    ],
)
def test_a_message_repeats_no_long_text_of_the_file(right, wrong):
    text = "7" * 50_000
    assert right in GOOD
    reported = refusal(GOOD.replace(right, wrong.replace("{}", text).replace("{{", "{").replace("}}", "}")))
    assert max(map(len, reported)) < 1_000


# Nine lines that stand for a billion values, and levels that each line doubles.
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)
DEEP_BOMB = "a0: &a0 [[[x]]]\n" + "".join(f"a{n}: &a{n} [[[*a{n - 1}]]]\n" for n in range(1, 20))


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ('[ask]\nmarkets = ["GB"\nbatch = 1\n', "a.toml", "a.toml: Unclosed array (at line 3, column 1)"),
        ("[ask]\n[ask]\n", "a.toml", "at line 2"),
        ("check_in = [2027-02-30]", "a.toml", "at line 1"),
        ("a = " + "9" * 5000, "a.toml", "a.toml: "),
        ("a = " + "[" * 5000, "a.toml", "nested too deeply"),
        ("[ask]\nbatch = 0x" + "f" * 5000, "a.toml", "more than 1,000 digits"),
        ("[properties]\nids = [0b" + "1_1" * 9000 + "]", "a.toml", "more than 1,000 digits"),
        ("a = {" * 900, "a.toml", "a.toml: "),
        ("ask:\n  batch: 1\n  batch: 2\n", "a.yaml", "a.yaml:3: the key batch is given twice"),
        ("ask:\n  markets: [GB\n  batch: 1\n", "a.yaml", "a.yaml:3: "),
        ("ask: {markets: \x00}", "a.yaml", "a.yaml: "),
        ("a: &a [*a]", "a.yaml", "nested too deeply"),
        ("[" * 5000, "a.yaml", "nested too deeply"),
        ("a: " + "{b: " * 5000, "a.yaml", "nested too deeply"),
        ("- " * 5000, "a.yaml", "nested too deeply"),
        (BOMB, "a.yaml", "it holds more than 250,000 values"),
        (DEEP_BOMB, "a.yaml", "nested too deeply"),
        ("a: [" + "1, " * 300_000 + "]", "a.yaml", "it holds more than 250,000 values"),
        (".".join("a" * 100_000) + " = 1", "a.toml", "nested too deeply"),
        ("a = {" + ".".join(["'b'"] * 100_000) + " = 1}", "a.toml", "nested too deeply"),
        ("? [a]\n: 1\n", "a.yaml", "a.yaml:1: a key must be a plain word"),
        ("- a\n", "a.yaml", "it has no keys"),
        ("--- 1\n--- 2\n", "a.yaml", "a.yaml:2: "),
    ],
)  # fmt: skip
def test_a_file_that_is_not_toml_or_yaml_is_refused_without_a_traceback(text, name, said):
    assert said in "\n".join(refusal(text, name))


def test_anchors_may_be_used_as_long_as_they_stay_small():
    aliased = SAME_IN_YAML.replace("[GB, NO]", "&them [GB, NO]")
    assert parse_spec(aliased, Path("a.yaml")) == parse_spec(SAME_IN_YAML, Path("a.yaml"))


@pytest.mark.parametrize("name", ["large.toml", "large.yaml"])
def test_a_file_larger_than_any_spec_is_refused_before_it_is_parsed(tmp_path, name):
    (tmp_path / name).write_bytes(b"# \xff" + b"x" * 1_000_000)
    with pytest.raises(SpecError, match="larger than 1,000,000 bytes") as refused:
        read_spec(tmp_path / name)
    assert "properties.file" in refused.value.hint


@pytest.mark.timeout(20)
def test_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "endless.toml").symlink_to("/dev/zero")
    for file in (tmp_path / "pipe.toml", tmp_path / "endless.toml"):
        with pytest.raises(SpecError, match="cannot be read: it is a pipe or a device, not a file"):
            read_spec(file)
        with pytest.raises(SpecError, match="cannot be read: it is a pipe or a device, not a file"):
            resolve_properties(Properties(file=file.name), tmp_path)


def test_an_empty_spec_names_what_is_missing():
    for name in ("a.toml", "a.yaml"):
        assert [each.split(": ")[1] for each in refusal("", name)] == ["ask", "properties", "stays"]


def test_a_shape_that_is_not_a_table_is_reported():
    assert "ask: must be a table" in refusal('ask = "all"\n[properties]\nids = [1]')[0]
    assert any("stays.horizon: must be a list" in each for each in refusal(
        "stays.horizon = {to_days = 3}\nstays.nights = [1]"))  # fmt: skip


def test_a_file_that_cannot_be_read_is_reported(tmp_path):
    with pytest.raises(SpecError, match="No such file"):
        read_spec(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="not UTF-8"):
        read_spec(tmp_path / "binary.toml")
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(SpecError, match=r"neither \.toml nor \.yaml"):
        read_spec(tmp_path / "sweep.json")


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert read_spec(path, TODAY) == parse_spec(GOOD, path, TODAY)
    path.write_bytes(GOOD.replace("batch = 50", "batch = 500").replace("\n", "\r\n").encode())
    with pytest.raises(SpecError, match=r"sweep\.toml:18: ask\.batch"):
        read_spec(path, TODAY)


def test_the_sample_is_a_valid_spec():
    assert read_spec(SAMPLE_SPEC).properties.sandbox == 300


@settings(max_examples=200)
@given(st.sampled_from([GOOD, SAME_IN_YAML]), st.data())
def test_no_slip_of_the_keyboard_ends_in_a_traceback(text, data):
    start = data.draw(st.integers(0, len(text)))
    stop = start + data.draw(st.integers(0, 12))
    slipped = st.sampled_from(["", "[", "]", "{}", '"', "-", "&a", "*a", "? ", "1", "null", "= 1", ": []", "\n", "\t"])
    damaged = text[:start] + data.draw(slipped | st.text(max_size=3)) + text[stop:]
    path = Path("a.toml" if text is GOOD else "a.yaml")
    reported = str(path)
    try:
        parse_spec(damaged, path, TODAY)
    except SpecError as refused:
        reported = refused.message
    assert str(path) in reported


def test_our_yaml_loader_leaves_pyyaml_as_it_was():
    parse_spec(SAME_IN_YAML, Path("a.yaml"))
    assert yaml.safe_load("a: NO\nb: 2027-03-01") == {"a": False, "b": date(2027, 3, 1)}
