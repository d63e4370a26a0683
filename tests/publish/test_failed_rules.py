"""A rule that fails is a visible defect of the night, and never silence."""

from __future__ import annotations

import pytest
from nights import load_night, started_at, sweep_id

from pipeline.domain.errors import TooManyFailures
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.night.summary import as_markdown, lines_of, refuse_failed_rules, summarise
from pipeline.publish import publish
from pipeline.report.write import write_reports

pytestmark = pytest.mark.slow

BROKEN = "report.no_such_rule"


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """A lake, a published night of which all rules could be asked, and one after it of which one could not."""
    lake = Lake(str(tmp_path_factory.mktemp("failed-rules") / "lake"))
    sound = publish(lake, load_night(lake, 0), started_at(0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.publish.range_work.detectors", lambda: ["report.floor_breach", BROKEN])
        return lake, sound, publish(lake, load_night(lake, 1), started_at(1))


def test_it_is_kept_with_its_reason(nights):
    *_, published = nights
    rows = query_published(published.file, "FROM state.failed_rule").fetchall()
    assert [row[:2] for row in rows] == [(sweep_id(1), BROKEN)]
    assert "no_such_rule" in rows[0][2]


def test_the_summary_names_it_and_the_run_fails_if_the_settings_say_so(nights, tmp_path):
    *_, published = nights
    summary = summarise(published, tmp_path)
    assert ("rules that failed", BROKEN) in lines_of(summary)
    assert "no\\_such\\_rule" in as_markdown(summary)
    refuse_failed_rules(summary, 1)
    with pytest.raises(TooManyFailures, match=BROKEN) as refused:
        refuse_failed_rules(summary, 0)
    assert refused.value.exit_code == 4


def test_a_night_of_which_all_could_be_asked_says_nothing_of_it(nights, tmp_path):
    _, sound, _ = nights
    summary = summarise(sound, tmp_path)
    assert "rules that failed" not in dict(lines_of(summary))
    refuse_failed_rules(summary, 0)


def test_the_digest_begins_with_it(nights):
    lake, *_ = nights
    (digest,) = write_reports(lake, ["digest"])
    said = digest.file.read_text()
    assert f"{BROKEN} could not be evaluated" in said
