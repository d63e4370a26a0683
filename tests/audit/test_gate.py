"""The gate: what passed is published, what failed is not, and what cannot be used leaves what is published."""

from __future__ import annotations

import json
import threading
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow.parquet as pq
import pytest
from audited_nights import audited, clean_night, every, first, load, passed, settings_of
from deltalake import DeltaTable
from nights import started_at, sweep_id

from pipeline.audit import stored_audit
from pipeline.domain.analysis import Analysis
from pipeline.domain.errors import GateBlocked, InputError, LakeError
from pipeline.domain.tables import REJECT
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.lake.delta import is_committed
from pipeline.night import nightly
from pipeline.night.done_steps import command_to_go_on
from pipeline.night.gate import accept, audit_sweep, publish_checked, refuse_blocked, report_page, tell_if_blocked
from pipeline.night.night import Night
from pipeline.night.read_spec import mark_as_demo
from pipeline.notify.blocked import messages
from pipeline.notify.ways import webhook
from pipeline.publish import published_sweeps
from pipeline.report.write import write_reports
from pipeline.report.written_pages import reports_page

pytestmark = pytest.mark.slow

SCRIPT = "<script>alert(1)</script>"


def doubled(rows):
    return rows | {"cell": [*rows["cell"], rows["cell"][0]]}


def asked(lake, query):
    return query_published(lake.published_file, query).fetchall()


def test_what_was_not_audited_is_not_published(lake):
    load(lake, 0, clean_night(0))
    with pytest.raises(GateBlocked, match="has not been audited") as blocked:
        publish_checked(lake, sweep_id(0), started_at(0))
    assert blocked.value.exit_code == 3
    assert not lake.published_file.exists()


def test_what_was_not_audited_is_not_published_for_a_reason_either(lake):
    load(lake, 0, clean_night(0))
    with pytest.raises(GateBlocked, match="has not been audited"):
        publish_checked(lake, sweep_id(0), started_at(0), override="skip it")
    assert not lake.published_file.exists()


def test_the_command_audits_before_it_overrides(lake, monkeypatch, tmp_path):
    from pipeline.cli import publish

    rows = first(doubled(clean_night(0)), "offer", total=Decimal(-5))
    load(lake, 0, rows)
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))
    monkeypatch.setenv("NIGHTAUDIT_SANDBOX_CLOCK", f"{started_at(0):%Y-%m-%dT%H:%M:%SZ}")
    monkeypatch.chdir(tmp_path)
    publish.publish(sweep_id(0), "skip it")
    assert asked(lake, "SELECT audit, override_reason, quarantined FROM mart.sweep") == [("overridden", "skip it", 1)]
    assert asked(lake, "SELECT count(*) FROM lake.offer WHERE total < 0") == [(0,)]
    assert ("key",) in asked(lake, "SELECT check_name FROM mart.quality WHERE outcome = 'failed'")
    assert report_page(lake, sweep_id(0)).exists()


def test_however_a_night_is_published_after_a_demo_it_is_compared_as_the_demo_was(lake, monkeypatch, tmp_path):
    """Otherwise the findings that rest on its mark-up end with the first night that another command publishes."""
    from pipeline.cli import publish

    mark_as_demo(lake, "", nights=1, what_if_markup_pct=15.0)
    audited(lake, 0, clean_night(0))
    publish_checked(lake, sweep_id(0), started_at(0))
    load(lake, 1, clean_night(1))
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))
    monkeypatch.setenv("NIGHTAUDIT_SANDBOX_CLOCK", f"{started_at(1):%Y-%m-%dT%H:%M:%SZ}")
    monkeypatch.chdir(tmp_path)
    publish.publish(sweep_id(1), None)
    assert [entry.analysis.what_if_markup_pct for entry in published_sweeps(lake)] == [15.0, 15.0]
    audited(lake, 2, clean_night(2))
    publish_checked(lake, sweep_id(2), started_at(2), analysis=Analysis(what_if_markup_pct=8.0))
    assert asked(lake, "SELECT what_if_markup_pct FROM ref.analysis") == [(8.0,)]


def test_a_blocked_night_keeps_the_last_good_one_and_an_override_is_written_down(lake):
    audited(lake, 0, clean_night(0))
    publish_checked(lake, sweep_id(0), started_at(0))
    write_reports(lake, ["parity"])
    found = audited(lake, 1, doubled(clean_night(1)))
    all_nights = reports_page(lake).read_text()
    assert f'{sweep_id(1)}/quality.html">Quality' in all_nights
    assert "failed, not published" in all_nights
    assert "1 night with reports" in all_nights
    with pytest.raises(GateBlocked, match=r"cell\.key") as blocked:
        refuse_blocked(lake, sweep_id(1), found)
    assert sweep_id(0) in blocked.value.kept
    assert "--override" in blocked.value.hint
    assert "request new answers: nightaudit sweep" in blocked.value.hint
    assert command_to_go_on(lake, sweep_id(1)).splitlines() == [
        f'nightaudit publish {sweep_id(1)} --override "reason"',
        "The audit blocked it. For new answers: nightaudit sweep",
    ]
    with pytest.raises(GateBlocked):
        publish_checked(lake, sweep_id(1), started_at(1))
    assert asked(lake, "SELECT sweep_id, audit FROM mart.sweep") == [(sweep_id(0), "passed")]
    with pytest.raises(InputError):
        publish_checked(lake, sweep_id(1), started_at(1), override=" ")
    publish_checked(lake, sweep_id(1), started_at(1), override="the supplier said so")
    write_reports(lake, ["parity"])
    all_nights = reports_page(lake).read_text()
    assert "failed, not published" not in all_nights
    assert "failed, published anyway" in all_nights
    reported = asked(lake, "SELECT audit, override_reason FROM mart.sweep ORDER BY started_at")
    assert reported == [("passed", None), ("overridden", "the supplier said so")]
    failed = "SELECT check_name FROM mart.quality WHERE outcome = 'failed' AND severity = 'critical' ORDER BY ALL"
    assert ("key",) in asked(lake, failed)


def test_nights_that_are_accepted_and_published_in_one_go_open_and_close_the_same_as_night_by_night(lake, tmp_path):
    reported = (
        "FROM report.flag_history ORDER BY ALL",
        "FROM report.finding_case ORDER BY ALL",
        "FROM mart.offer_history ORDER BY ALL",
        "FROM mart.sweep ORDER BY ALL",
    )
    one_by_one = Lake(str(tmp_path / "one by one"))
    for night in range(3):
        rows = doubled(clean_night(night)) if night == 1 else clean_night(night)
        for each in (lake, one_by_one):
            audited(each, night, rows)
        if night < 2:
            accept(lake, sweep_id(night), started_at(night), "known")
        publish_checked(one_by_one, sweep_id(night), started_at(night), override="known" if night == 1 else None)
    assert not lake.published_file.exists()
    publish_checked(lake, sweep_id(2), started_at(2))
    assert [asked(lake, query) for query in reported] == [asked(one_by_one, query) for query in reported]
    assert asked(lake, "SELECT audit, override_reason FROM mart.sweep ORDER BY started_at") == [
        ("passed", None),
        ("overridden", "known"),
        ("passed", None),
    ]
    # Some were open for one night only, and some lasted.
    assert asked(
        lake, "SELECT bool_or(resolved_at IS NULL), bool_or(resolved_at IS NOT NULL) FROM report.flag_history"
    ) == [(True, True)]


def test_a_night_that_was_not_audited_is_not_accepted(lake):
    load(lake, 0, clean_night(0))
    with pytest.raises(GateBlocked, match="has not been audited"):
        accept(lake, sweep_id(0), started_at(0), "known")
    assert published_sweeps(lake) == []


def test_an_unusable_offer_is_a_reject_and_the_counts_balance(lake):
    rows = first(clean_night(0), "offer", total=Decimal(-5))
    served = len(rows["offer"])
    found = audited(lake, 0, rows)
    assert found.is_passed
    assert found.quarantined == 1
    publish_checked(lake, sweep_id(0), started_at(0))
    ((stored,),) = asked(lake, "SELECT count(*) FROM lake.offer")
    rejected = asked(lake, "SELECT rule, reason, raw_address, offer_no FROM lake.reject WHERE rule IS NOT NULL")
    assert served == stored + len(rejected)
    assert rejected == [("total_not_positive", "the total is -5.00 EUR", f"raw/{sweep_id(0)}/multi-GB-000000#0", 0)]
    assert asked(lake, "SELECT quarantined FROM mart.sweep") == [(1,)]
    for table in ("mart.offer_latest", "lake.offer", "lake.penalty", "lake.promotion"):
        name = "seen_offer_no" if table.startswith("mart") else "offer_no"
        search = "seen_search_id" if table.startswith("mart") else "search_id"
        assert asked(lake, f"SELECT count(*) FROM {table} WHERE {name} = 0 AND {search} = 1") == [(0,)]  # noqa: S608 - our own names
    # The table itself is never altered.
    held = pq.read_table(lake.local(lake.table_file("offer", sweep_id(0), "multi-GB-00000")))
    assert (
        held.num_rows + pq.read_table(lake.local(lake.table_file("offer", sweep_id(0), "multi-SE-00000"))).num_rows
        == served
    )


def test_an_audit_repeated_changes_nothing(lake):
    once = audited(lake, 0, first(clean_night(0), "offer", total=Decimal(0)))
    again = audit_sweep(settings_of(lake), lake, sweep_id(0), once.audited_at)
    assert once.is_new
    assert not again.is_new
    assert (again.audit_no, again.findings, again.quarantined) == (once.audit_no, once.findings, once.quarantined)
    assert stored_audit(lake, sweep_id(0)).findings == once.findings
    assert DeltaTable(lake.table_root("reject")).version() == DeltaTable(lake.table_root("quality")).version() == 1


@pytest.mark.parametrize("place", ["quarantine", "quality"])
def test_an_audit_that_was_killed_comes_to_the_same_when_repeated(lake, monkeypatch, place):
    def dies(*_, **__):
        raise KeyboardInterrupt

    rows = first(clean_night(0), "offer", total=Decimal(0))
    where = {"quarantine": "pipeline.audit.quarantine.commit_files", "quality": "pipeline.lake.delta.commit_files"}[
        place
    ]
    load(lake, 0, rows)
    with monkeypatch.context() as patch:
        patch.setattr(where, dies)
        with pytest.raises(KeyboardInterrupt):
            audit_sweep(settings_of(lake), lake, sweep_id(0), started_at(0))
    assert stored_audit(lake, sweep_id(0)) is None
    found = audit_sweep(settings_of(lake), lake, sweep_id(0), started_at(0))
    assert found.quarantined == 1
    assert found.is_passed
    assert is_committed(lake, REJECT, f"{sweep_id(0)}/quarantine")


def test_a_sweep_that_is_not_loaded_cannot_be_audited(lake):
    load(lake, 0, clean_night(0))
    path = lake.manifest_path(sweep_id(0))
    lake.put_new(lake.manifest_path(sweep_id(1)), lake.get(path).replace(sweep_id(0).encode(), sweep_id(1).encode()))
    with pytest.raises(LakeError, match="not loaded"):
        audit_sweep(settings_of(lake), lake, sweep_id(1), started_at(1))


def test_the_page_stands_alone_and_shows_supplier_text_as_text(lake):
    named = f"{SCRIPT}\x1b[31m\u202e{'x' * 100_000}"
    rows = every(doubled(clean_night(0)), "offer", lambda _: {"board_id": 777, "board_name": named})
    audited(lake, 0, rows)
    page = report_page(lake, sweep_id(0)).read_text()
    assert SCRIPT not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "\\x1b[31m\\u202exxx" in page
    assert "x" * 10_000 not in page
    assert "&lt;script&gt;" in page
    assert "Blocked" in page
    assert "Cold start" in page
    assert f"raw/{sweep_id(0)}/multi-GB-000000#0" in page
    for outside in ("http://", "https://", "src=", "@import", "url("):
        assert outside not in page
    reported = json.loads(report_page(lake, sweep_id(0)).with_name("quality.json").read_text())
    assert reported["is_passed"] is False
    assert any("cell.key" in cause for cause in reported["causes"])


@pytest.fixture
def receiver():
    """A real receiver of POSTs: its address and what it received."""
    reported = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            reported.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook/s3cret", reported
    server.shutdown()
    server.server_close()


def test_a_blocked_night_sends_one_message_a_cause_and_once(lake, receiver):
    address, reported = receiver
    settings = settings_of(lake, notify_webhook=address)
    rows = every(doubled(clean_night(0)), "offer", lambda _: {"currency": "USD"})
    found = audited(lake, 0, rows, settings=settings)
    tell_if_blocked(settings, lake, found)
    subjects = [message["subject"].split()[1] for message in reported]
    # A cell that is there twice fails more than its key; that is one message.
    assert sorted(subjects) == ["cell.key", "offer.quarantined_share"]
    assert {cause.check_name for cause in found.causes("critical")} > {"key", "quarantined_share"}
    assert "cell.cells_as_planned" in reported[0]["text"]
    assert all(str(report_page(lake, sweep_id(0))) in message["text"] for message in reported)
    tell_if_blocked(settings, lake, audit_sweep(settings, lake, sweep_id(0), started_at(0)))
    assert len(reported) == len(subjects)


def test_an_unreached_receiver_gets_the_message_with_the_next_audit_once(lake, receiver):
    address, reported = receiver
    away, here = (settings_of(lake, notify_webhook=to) for to in ("http://127.0.0.1:9/hook", address))
    found = audited(lake, 0, doubled(clean_night(0)), settings=away)
    tell_if_blocked(away, lake, found)
    for _ in range(2):
        tell_if_blocked(here, lake, audit_sweep(here, lake, sweep_id(0), started_at(0)))
        assert (
            len(reported) == len(messages(sweep_id(0), found.causes("critical"), report_page(lake, sweep_id(0)))) == 1
        )


def test_the_address_of_a_webhook_is_in_no_log(receiver, caplog):
    address, reported = receiver
    with caplog.at_level("DEBUG"):
        webhook(address)("a subject", "a text")
    assert reported
    assert "s3cret" not in caplog.text


def test_a_later_night_brings_what_was_not_reported_unless_it_was_published_since(lake, receiver):
    address, reported = receiver
    away, here = (settings_of(lake, notify_webhook=to) for to in ("http://127.0.0.1:9/hook", address))
    for number in range(2):
        tell_if_blocked(away, lake, audited(lake, number, doubled(clean_night(number)), settings=away))
    passed(lake, 1)
    tell_if_blocked(here, lake, audited(lake, 2, clean_night(2), settings=here))
    assert {message["subject"].split()[-1] for message in reported} == {sweep_id(0)}


def test_each_way_of_sending_is_remembered_separately(lake, receiver):
    address, reported = receiver
    found = audited(lake, 0, doubled(clean_night(0)))
    reached = settings_of(lake, notify_webhook=address, notify_block="slack-webhook/away")

    def deaf(_subject, _text):
        raise OSError

    for _ in range(2):
        tell_if_blocked(reached, lake, found, lambda _: deaf)
    assert len(reported) == 1


def test_an_audit_killed_before_its_message_is_reported_later(lake, receiver, monkeypatch):
    address, reported = receiver

    async def loaded_already(_):
        pass

    monkeypatch.setattr(nightly.night_sweep, "collect", loaded_already)
    settings = settings_of(lake, notify_webhook=address)
    audited(lake, 0, doubled(clean_night(0)), settings=settings)
    tomorrow = started_at(1)
    nightly.finish_left_over(Night(settings, lake, clock=lambda: tomorrow))
    assert published_sweeps(lake) == []
    assert len(reported) == 1


def test_a_receiver_that_is_away_is_a_warning_without_its_address(lake, caplog):
    settings = settings_of(lake, notify_webhook="http://127.0.0.1:9/hook/s3cret")
    tell_if_blocked(settings, lake, audited(lake, 0, doubled(clean_night(0))))
    assert "could not be sent" in caplog.text
    assert "s3cret" not in caplog.text


def test_great_expectations_is_not_imported_before_it_judges():
    import subprocess
    import sys

    code = (
        "import sys; import pipeline.night.gate, pipeline.cli.audit; "
        "print(sorted({'great_expectations', 'pandas', 'prefect'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
