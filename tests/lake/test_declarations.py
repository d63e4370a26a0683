"""A mistake in a declaration beside the SQL is refused, with its file, its rule and its key."""

from __future__ import annotations

import pytest

from pipeline.lake.relations import FindingRule, declarations

RULE = """[too_dear]
title = "Too dear"
makes = "flags"
subject = ["source", "offer_key"]
numbers = ["offer.total"]
meaning = "A finding when the price is too high."
"""


@pytest.fixture
def declared(tmp_path, monkeypatch):
    (tmp_path / "report").mkdir()
    monkeypatch.setattr("pipeline.lake.relations.sql_folder", lambda: tmp_path)

    def read(text):
        (tmp_path / "report" / "rules.toml").write_text(text)
        return declarations.__wrapped__("report", "rules", FindingRule)

    return read


def test_a_rule_is_about_the_relation_of_its_name_unless_it_names_another(declared):
    assert declared(RULE)["too_dear"].full_name == "report.too_dear"
    assert declared(f'{RULE}relation = "dear"\n')["too_dear"].full_name == "report.dear"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("title =", "titel =", "unknown field `titel`"),
        ('title = "Too dear"\n', "", "missing required field `title`"),
        ('"flags"', '"flag"', r"'flag' - at `\$.makes`"),
    ],
)
def test_a_mistake_is_named(declared, before, after, said):
    with pytest.raises(ValueError, match=rf"sql/report/rules.toml, \[too_dear\]: .*{said}"):
        declared(RULE.replace(before, after))
