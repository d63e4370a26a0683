from datetime import date
from decimal import Decimal

import pytest

from pipeline.domain.errors import SpecError
from pipeline.spec import resolve_properties
from pipeline.spec.model import Properties


def resolved(folder, text, name="ids.txt"):
    (folder / name).write_text(text, encoding="utf-8")
    return resolve_properties(Properties(file=name), folder)


def refused(folder, text, name="ids.txt"):
    with pytest.raises(SpecError) as error:
        resolved(folder, text, name)
    assert error.value.exit_code == 2
    assert error.value.hint
    return error.value.message


def test_ids_of_the_spec_come_back_ascending(tmp_path):
    assert resolve_properties(Properties(ids=(3, 1, 2)), tmp_path) == (1, 2, 3)


@pytest.mark.parametrize(
    "text",
    [
        "3\n1\n2\n",
        "# all of them\r\n3\r\n\r\n1 # the first\r\n  2",
        "\ufeff3\n1\n2\n",
        "property_id\n3\n1\n2\n",
        'name,property_id\n"Hotel #1, by the sea",3\n# closed: 9\nb,1\n\nc, 2\n',
        "property_id;name\n3;a\n1;b\n2;c\n",
        "name\tproperty_id\na\t3\nb\t1\nc\t2\n",
    ],
)
def test_a_file_holds_one_id_a_line_or_a_column(tmp_path, text):
    assert resolved(tmp_path, text) == (1, 2, 3)


def test_ids_beyond_the_53_bits_of_a_double_survive(tmp_path):
    assert resolved(tmp_path, "9007199254740993\n9223372036854775807\n") == (2**53 + 1, 2**63 - 1)


@pytest.mark.parametrize("wrong", ["x", "-1", "0", "1.5", "1e3", "9223372036854775808", "1" * 5000, "١", "1 2"])
def test_what_is_not_an_id_is_reported_with_its_row(tmp_path, wrong):
    assert "ids.txt:4: " in refused(tmp_path, f"# ids\n\n1\n{wrong}\n2\n")


def test_all_wrong_rows_are_reported_and_many_summed_up(tmp_path):
    reported = refused(tmp_path, "1\nx\n1\n" + "y\n" * 20)
    assert "ids.txt:2: this is not a property id" in reported
    assert "ids.txt:3: 1 is given twice, first in row 1" in reported
    assert "and 12 more" in reported


def test_rows_of_a_csv_file_are_reported_as_the_file_counts_them(tmp_path):
    reported = refused(tmp_path, 'name,property_id\n"a\nb",7\nc\n')
    assert "ids.txt:2: this" in reported
    assert "ids.txt:4: this" in reported


@pytest.mark.parametrize("text", ["", "# nothing\n\n", "property_id\n", "a,property_id\n"])
def test_a_file_without_ids_is_reported(tmp_path, text):
    assert "contains no property id" in refused(tmp_path, text)


def test_a_csv_file_without_the_column_is_reported(tmp_path):
    assert "the header names 2 columns, but no property_id" in refused(tmp_path, "id,name\n1,a\n")


def test_a_file_that_cannot_be_read_is_reported(tmp_path):
    with pytest.raises(SpecError, match="No such file"):
        resolve_properties(Properties(file="none.txt"), tmp_path)
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(SpecError, match="not UTF-8"):
        resolve_properties(Properties(file="bytes.txt"), tmp_path)


def test_an_absolute_path_needs_no_folder(tmp_path):
    (tmp_path / "ids.txt").write_text("7")
    assert resolve_properties(Properties(file=str(tmp_path / "ids.txt")), tmp_path / "elsewhere") == (7,)


def test_a_query_is_asked_and_its_answer_is_a_set(tmp_path):
    asked = []

    def resolve(query):
        asked.append(query)
        return [3, 1, 3]

    assert resolve_properties(Properties(query="SELECT 1"), tmp_path, resolve_query=resolve) == (1, 3)
    assert asked == ["SELECT 1"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ([], "nothing"),
        ([7, None], "NULL,"),
        (["1"], "'1',"),
        ([0], "0,"),
        ([2**63], "9223372036854775808,"),
        ([True], "true,"),
        ([Decimal("1.50")], "1.50,"),
        ([date(2030, 1, 2)], "2030-01-02,"),
        ([bytes(10_000)], "b'"),
    ],
)
def test_a_query_without_usable_ids_is_reported_in_the_words_of_sql(tmp_path, answer, told):
    with pytest.raises(SpecError, match=r"properties\.query") as refused:
        resolve_properties(Properties(query="SELECT 1"), tmp_path, resolve_query=lambda _: answer)
    assert f" returned {told}" in str(refused.value)
    assert len(str(refused.value)) < 300


def test_a_query_before_the_first_night_is_reported(tmp_path):
    with pytest.raises(SpecError, match="this lake has none"):
        resolve_properties(Properties(query="SELECT 1"), tmp_path)


def test_the_sandbox_gives_as_many_as_are_asked_for(tmp_path):
    def resolve(wanted):
        return range(1, min(wanted, 5) + 1)

    assert resolve_properties(Properties(sandbox=2), tmp_path, resolve_sandbox=resolve) == (1, 2)
    with pytest.raises(SpecError, match="asks for 6 properties, but the sandbox has only 5"):
        resolve_properties(Properties(sandbox=6), tmp_path, resolve_sandbox=resolve)
    with pytest.raises(SpecError, match="supplier's address is set"):
        resolve_properties(Properties(sandbox=2), tmp_path)


def test_a_file_that_holds_a_secret_is_refused_without_its_text(tmp_path):
    for text in ("NIGHTAUDIT_CLIENT_SECRET=hunter2", "id,hunter2,key", "1\nhunter2", "property_id,a\nhunter2,1"):
        assert "hunter2" not in refused(tmp_path, text)
