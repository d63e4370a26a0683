"""The rule file: every mistake with its line, and nothing sent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import pipeline.sample
from pipeline.domain.errors import InputError
from pipeline.notify.alert_rules import read_rules

GOOD = """
[[rule]]
name = "floors"
relation = "report.flag"
who = ["me"]

[receiver.me]
webhook_from = "ADDRESS"
"""


def written(tmp_path, text):
    file = tmp_path / "alerts.toml"
    file.write_text(text)
    return file


def test_the_sample_can_be_read():
    rules = read_rules(Path(pipeline.sample.__file__).with_name("alerts.toml"))
    assert {rule.relation for rule in rules.rule} == {"report.finding_case", "mart.sweep"}


@pytest.mark.parametrize(
    ("before", "after", "line", "reported"),
    [
        ("who =", "whom =", "5:", "rule[1].whom: there is no such key"),
        ('"report.flag"', '"report.flag; DROP TABLE x"', "4:", "must be a relation of mart or report"),
        ('["me"]', '["you"]', "", " rule 'floors' is for 'you', but there is no [receiver.you]"),
        ('webhook_from = "ADDRESS"', "", "7:", "needs webhook_from, mail_from or block"),
        (
            'webhook_from = "ADDRESS"',
            'webhook_from = "https://chat.example/secret"',
            "8:",
            "the name of an environment variable",
        ),
        ('relation = "report.flag"', 'relation = "mart.sweep"\nconfirm = true', "2:", "can be confirmed"),
        ('name = "floors"', "name = ", "", "Invalid value (at line 3"),
        ("who =", 'where = "1 = 1; DROP TABLE x"\nwho =', "5:", "rule[1].where: The condition cannot be read: Parser"),
        ("who =", 'where = ")"\nwho =', "5:", "The condition cannot be read"),
        (
            "who =",
            'where = "true) UNION (FROM x WHERE true"\nwho =',
            "5:",
            "The condition is not one condition on a row",
        ),
    ],
)
def test_a_mistake_is_reported_with_its_line(tmp_path, before, after, line, reported):
    with pytest.raises(InputError) as refused:
        read_rules(written(tmp_path, GOOD.replace(before, after)))
    assert reported in str(refused.value)
    assert f"alerts.toml:{line}" in str(refused.value)
    assert "No alert was sent." in str(refused.value)
    assert "chat.example" not in str(refused.value)


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_rules(tmp_path / "none.toml")


def test_a_file_larger_than_any_rules_is_refused_before_it_is_parsed(tmp_path):
    with pytest.raises(InputError, match=r"alerts\.toml cannot be read: it is larger than 1,000,000 bytes") as refused:
        read_rules(written(tmp_path, "#" * 1_000_001))
    assert refused.value.kept == "No alert was sent."


@pytest.mark.timeout(20)
def test_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "endless.toml").symlink_to("/dev/zero")
    for file in (tmp_path / "pipe.toml", tmp_path / "endless.toml"):
        with pytest.raises(InputError, match="cannot be read: it is a pipe or a device, not a file") as refused:
            read_rules(file)
        assert refused.value.kept == "No alert was sent."


@pytest.mark.parametrize("written_so", ["({})", "[{}]", "f({})", "CASE WHEN {} THEN 1 END"])
def test_a_condition_of_brackets_is_refused_before_it_is_parsed(tmp_path, monkeypatch, written_so):
    where = "1"
    for _ in range(5_000):
        where = written_so.format(where)
    monkeypatch.setattr("pipeline.lake.user_condition.duckdb", None)
    with pytest.raises(InputError, match=r"alerts\.toml:5: rule\[1\]\.where: The condition is (too long|nested too)"):
        read_rules(written(tmp_path, GOOD.replace('who = ["me"]', f'where = "{where}"\nwho = ["me"]')))


def test_thousands_of_mistakes_are_summed_up(tmp_path):
    wrong = "".join(f'[[rule]]\nname = "{n}"\nrelation = "offer"\nwho = ["me"]\n' for n in range(2_000))
    with pytest.raises(InputError) as refused:
        read_rules(written(tmp_path, GOOD + wrong))
    _, *lines, last = refused.value.message.splitlines()
    assert len(lines) == 20
    assert "alerts.toml:11: rule[2].relation: must be a relation" in lines[0]
    assert last == "  and 1,980 more"
