"""The complete night in this process, against the sandbox over HTTP: no Prefect, no server."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from tiny_night import outside_supplier, published, receiving, rows, settings_in, write_spec_in

from pipeline.domain.errors import (
    CallsUsedUp,
    GateBlocked,
    InputError,
    LakeBusy,
    SettingsError,
    SupplierDown,
    TooManyFailures,
)
from pipeline.lake import Lake
from pipeline.lake.raw import read_ending
from pipeline.lake.simulated import SIMULATED
from pipeline.night import night_sweep, nightly
from pipeline.night.done_steps import command_to_go_on, done_steps, note_done
from pipeline.night.gate import audit_sweep, publish_checked
from pipeline.night.night import Night
from pipeline.night.nightly import refuse_at_the_start, run_night
from pipeline.night.verify import verify
from pipeline.publish.without_rows import published_without_rows
from pipeline.sweep import normalisers

ROOT = Path(__file__).parents[2]
# No night of the sandbox uses the machine's clock: a run may last beyond midnight.
AT = datetime(2026, 10, 1, 2, tzinfo=UTC)


def threads(workers, *_, **__):
    return ThreadPoolExecutor(workers)


@pytest.fixture(autouse=True)
def workers_of_this_process(monkeypatch):
    monkeypatch.setattr(normalisers, "ProcessPoolExecutor", threads)


@pytest.fixture
def settings(tmp_path):
    return partial(settings_in, tmp_path, sandbox_clock=AT)


def run(given, **others):
    return run_night(Night(given, Lake(given.lake), **others))


@pytest.fixture(scope="module")
def first_made(once_a_run):
    """A lake with one published night, its result, and what was shown of it."""

    def make(folder):
        shown, watched = [], []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(normalisers, "ProcessPoolExecutor", threads)
            run(settings_in(folder, sandbox_clock=AT), show=shown.append, watch=watched.append)
        return folder, shown, watched

    return once_a_run("a-first-night", make)


@pytest.fixture
def first(first_made, settings):
    """The result of the first night; the lake of the test is a copy of the one that holds it."""
    folder, (summary,), _ = first_made
    shutil.copytree(folder / "lake", settings().lake)
    return summary


@pytest.fixture(scope="module")
def loaded_made(once_a_run):
    """A lake with a sweep that is loaded, and not yet judged."""

    def make(folder):
        given = settings_in(folder, sandbox_clock=AT)
        manifest = night_sweep.start(given, Lake(given.lake), AT)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(normalisers, "ProcessPoolExecutor", threads)
            asyncio.run(night_sweep.collect(Night(given, Lake(given.lake), manifest)))
        return folder, manifest.sweep_id

    return once_a_run("a-loaded-night", make)


@pytest.fixture
def loaded(loaded_made, settings):
    """The sweep of the lake of the test, which is loaded and not yet judged."""
    folder, sweep_id = loaded_made
    shutil.copytree(folder / "lake", settings().lake)
    return sweep_id


@pytest.fixture
def command(tmp_path, nightaudit):
    """Run a command in this process, over the lake of the test."""

    def run(*arguments: str, **others: str) -> subprocess.CompletedProcess[str]:
        given = {"NIGHTAUDIT_LAKE": "lake", "NIGHTAUDIT_WORKERS": "1", "NIGHTAUDIT_SPEC": str(write_spec_in(tmp_path))}
        return nightaudit(tmp_path, *arguments, **given, NIGHTAUDIT_SANDBOX_CLOCK=AT.isoformat(), **others)

    return run


def test_two_nights_in_a_row_are_published_and_the_second_counts_from_the_first(settings, first_made, first, caplog):
    _, shown, watched = first_made
    shown_next = []
    caplog.set_level("INFO", "pipeline.night.nightly")
    second = run(settings(sandbox_clock=AT + timedelta(days=1)), show=shown_next.append)
    logged = {record.step: record.message for record in caplog.records}

    assert (shown, shown_next) == ([first], [second])
    assert (first.previous_date, second.previous_date) == (None, first.snapshot_date)
    assert first.is_simulated
    assert first.planned == sum(count for _, count in first.cells) == 8
    assert watched[-1].landed_searches == watched[-1].planned_searches
    lake = Lake(settings().lake)
    assert published(lake) == [first.sweep_id, second.sweep_id]
    assert rows(lake, "SELECT count(*) FROM mart.offer_history")[0][0] >= first.offers > 0
    assert rows(lake, second.query)
    assert logged["begin"].startswith(f"Sweep {second.sweep_id} of sandbox: {second.planned:,} cells in ")
    assert logged["collect"].startswith(f"Collected {second.planned:,} cells with {second.requests:,} requests: ")
    assert f"{dict(second.cells)['offered']:,} offered" in logged["collect"]
    assert logged["audit"].startswith("The audit passed: ")
    assert logged["publish"].startswith(f"Published {second.offers:,} offers, {second.price_changes:,} price changes: ")
    assert logged["report"].startswith("Wrote digest, parity, promotions, availability: ")
    assert logged["summarise"] == f"{second.findings:,} findings are open, {second.new_findings:,} of them new."


def test_what_was_begun_today_is_resumed_and_no_other_is_begun(settings):
    given, lake = settings(), Lake(settings().lake)
    begun = night_sweep.start(given, lake, AT)

    assert nightly.begin(Night(given, lake)).sweep.sweep_id == begun.sweep_id
    assert lake.sweep_ids() == [begun.sweep_id]


@pytest.mark.slow
def test_a_run_interrupted_before_publishing_repeats_no_request_and_bad_rules_cost_only_the_alerts(
    settings, loaded, tmp_path
):
    shown = []
    rules = rule_file(tmp_path, 'webhook_from = "ADDRESS"')
    # That no number is in this column is known of its rows only.
    rules.write_text(rules.read_text().replace("key =", "where = 'sweep_id::INTEGER > 0'\nkey ="))
    given = settings(alerts=rules)
    lake = Lake(given.lake)
    raw = {file: file.stat().st_mtime_ns for file in lake.local(lake.raw_folder(loaded)).iterdir()}

    with pytest.raises(InputError, match="cannot be evaluated"):
        run(given, show=shown.append)
    assert shown[0].sweep_id == loaded
    assert lake.sweep_ids() == published(lake) == [loaded]
    assert shown[0].reports.exists()
    after = {file: file.stat().st_mtime_ns for file in lake.local(lake.raw_folder(loaded)).iterdir()}
    assert after == raw


@pytest.mark.slow
def test_what_an_earlier_day_left_unfinished_is_closed_and_published_before_todays_night(settings, tmp_path):
    given, lake = settings(spec=write_spec_in(tmp_path, days=20)), Lake(settings().lake)
    left = night_sweep.start(given, lake, AT)
    with pytest.raises(CallsUsedUp):
        asyncio.run(night_sweep.collect(Night(given.model_copy(update={"daily_calls": 45}), lake, left)))

    today = run(given.model_copy(update={"sandbox_clock": AT + timedelta(days=1)}))

    assert published(lake) == [left.sweep_id, today.sweep_id]
    assert dict(today.cells)["not_swept"] == 0
    states = rows(lake, "SELECT state, not_swept > 0 FROM mart.sweep ORDER BY started_at")
    assert states == [("closed", True), ("complete", False)]
    assert (lake.root / "reports" / left.sweep_id / "index.html").exists()


@pytest.mark.slow
def test_a_night_without_any_answer_is_closed_and_not_published_and_is_no_damage(settings, caplog):
    given, lake = settings(), Lake(settings().lake)
    left = night_sweep.start(given, lake, AT)

    today = run(given.model_copy(update={"sandbox_clock": AT + timedelta(days=1)}))

    assert published(lake) == [today.sweep_id]
    assert "sweep.answered_cells (all): cells with an answer; 0 where at least 1 is expected" in caplog.text
    assert read_ending(lake, left.sweep_id) is not None
    assert verify(lake, is_deep=True).damages == ()


@pytest.mark.slow
def test_offers_of_the_last_night_stay_as_they_were_seen_when_a_night_has_no_answer(settings):
    given, lake = settings(), Lake(settings().lake)
    run(given)
    seen = "SELECT offer_key, last_seen_at, unobserved_since FROM mart.offer_latest ORDER BY ALL"
    before = rows(lake, seen)
    later = given.model_copy(update={"sandbox_clock": AT + timedelta(days=1)})
    left = night_sweep.start(later, lake, later.clock())
    nightly.finish_left_over(Night(given.model_copy(update={"sandbox_clock": AT + timedelta(days=2)}), lake))
    assert left.sweep_id not in published(lake)
    assert rows(lake, seen) == before != []


@pytest.mark.slow
def test_the_command_that_continues_a_stopped_night_names_the_missing_step(settings, loaded, monkeypatch):
    given, lake = settings(), Lake(settings().lake)
    assert command_to_go_on(lake, loaded) == f"nightaudit audit {loaded}"
    audit_sweep(given, lake, loaded, AT)
    assert command_to_go_on(lake, loaded) == f"nightaudit publish {loaded}"
    note_done(lake, loaded, "audit")
    assert command_to_go_on(lake, loaded) == "nightaudit nightly"
    publish_checked(lake, loaded, AT)
    note_done(lake, loaded, "publish")
    assert command_to_go_on(lake, loaded) == "nightaudit nightly"
    committed = []
    monkeypatch.setattr(Lake, "commit", lambda held: committed.append(done_steps(held, loaded)))
    nightly.finish_left_over(Night(given, lake))
    assert command_to_go_on(lake, loaded) == ""
    # Others see a lake on S3 as of its last commit: each step is committed before the next one tells of it.
    finished = [nightly.announce, nightly.report, nightly.alert]
    assert [len(done) for done in committed] == [len(done_steps(lake, loaded)) - left for left in (2, 1, 0)]
    assert {step.__name__ for step in finished} <= committed[-1]


@pytest.mark.slow
def test_a_used_up_daily_cap_closes_the_sweep_and_publishes_what_there_is(settings, tmp_path):
    summary = run(settings(spec=write_spec_in(tmp_path, days=20), daily_calls=45))

    assert not summary.is_complete
    assert dict(summary.cells)["not_swept"] > 0
    assert summary.planned == sum(count for _, count in summary.cells)
    assert summary.offers > 0


def test_a_cap_that_lets_nothing_land_is_refused_and_publishes_nothing(settings, tmp_path):
    given = settings(spec=write_spec_in(tmp_path, days=20), daily_calls=2)
    with pytest.raises(SettingsError, match="land together"):
        run(given)
    assert published(Lake(given.lake)) == []


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """A night of a supplier with a poisoned property, and one of which it answers nothing; what each of them said."""
    folder, shown = tmp_path_factory.mktemp("outside"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normalisers, "ProcessPoolExecutor", threads)
        with outside_supplier(partial(settings_in, folder), folder, poison=True) as (sandbox, given):
            with pytest.raises(TooManyFailures) as failed:
                run(given, show=shown.append)
            before = shown[0].file.read_bytes()
            sandbox.control("faults", {"status_500_rate": 1.0})
            with pytest.raises(SupplierDown) as down:
                run(given, show=shown.append)
    return given, shown, failed.value, down.value, before


@pytest.mark.slow
def test_too_many_failed_cells_end_with_an_error_once_the_night_is_published(outside):
    given, (first,), failed, *_ = outside
    assert failed.exit_code == 4
    assert published(Lake(given.lake)) == [first.sweep_id]
    assert dict(first.cells)["failed"] > given.tolerated_failed_share * first.planned


@pytest.mark.slow
def test_a_supplier_that_is_down_leaves_the_last_night_published(outside):
    given, (first,), _, down, before = outside
    lake = Lake(given.lake)
    assert "resume" in down.hint
    assert down.__cause__ is None
    assert first.file.read_bytes() == before
    assert published(lake) == [first.sweep_id]
    assert len(lake.sweep_ids()) == 2


def test_a_second_run_at_the_same_time_is_refused(settings):
    given = settings()
    lake = Lake(given.lake)
    with lake.writing("a test"), pytest.raises(LakeBusy):
        run(given)
    assert lake.sweep_ids() == []


def test_a_mistake_in_the_alert_rules_is_refused_before_the_first_request(settings, tmp_path):
    given = settings(alerts=tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot be read"):
        run(given)
    assert not Path(given.lake).exists()


@pytest.mark.parametrize("where", ["severity =", "true) OR (SELECT", "true; DROP TABLE mart.sweep", "1 = 1) --"])
def test_a_condition_that_is_none_is_refused_before_anything_is_asked(settings, tmp_path, where):
    file = rule_file(tmp_path, 'webhook_from = "ADDRESS"')
    file.write_text(file.read_text().replace("key =", f"where = {where!r}\nkey ="))
    given = settings(alerts=file)
    with pytest.raises(InputError, match=r"alerts\.toml:\d+: rule\[1\]\.where: ") as refused:
        run(given)
    assert "condition" in refused.value.message
    assert not Path(given.lake).exists()


@pytest.mark.usefixtures("built_once")
@pytest.mark.parametrize(
    ("wrong", "reported"),
    [
        ('where = "no_such_column > 1"', 'Referenced column "no_such_column" not found'),
        ('where = "market IN (SELECT market FROM mart.no_such)"', "Table with name no_such does not exist"),
        ('where = "no_such_function(sweep_id)"', "Function with name no_such_function does not exist"),
        ("where = \"sweep_id IN (SELECT content FROM read_text('/etc/passwd'))\"", "Cannot access file"),
        ('relation = "mart.no_such"', "Table with name no_such does not exist"),
        ('key = ["no_such_key"]', 'Referenced column "no_such_key" not found'),
    ],
)
def test_a_rule_with_an_unknown_name_is_refused_before_the_first_request(settings, tmp_path, wrong, reported):
    file = rule_file(tmp_path, 'webhook_from = "ADDRESS"')
    kept = [line for line in file.read_text().splitlines() if line.partition(" ")[0] != wrong.partition(" ")[0]]
    file.write_text("\n".join([kept[0], wrong, *kept[1:]]))
    given = settings(alerts=file)
    with pytest.raises(InputError, match="The rule 'x' cannot be evaluated") as refused:
        run(given)
    assert reported in refused.value.message
    assert "root:" not in str(refused.value)
    assert not Path(given.lake).exists()


@pytest.mark.usefixtures("built_once")
def test_what_every_relation_of_a_published_file_has_can_be_named_in_a_rule_before_the_first_night(settings, tmp_path):
    file = rule_file(tmp_path, 'webhook_from = "ADDRESS"')
    wanted = "sweep_id IN (SELECT sweep_id FROM lake.offer JOIN ref.market USING (market) WHERE total > 0)"
    file.write_text(file.read_text().replace("key =", f'where = "{wanted}"\nkey ='))
    refuse_at_the_start(Night(settings(alerts=file), Lake(settings().lake)))


@pytest.fixture(scope="module")
def without_rows():
    with published_without_rows() as file:
        yield file


@pytest.fixture
def built_once(monkeypatch, without_rows):
    """The file without rows that rules are tried on takes seconds, and is the same each time."""
    monkeypatch.setattr(nightly, "published_without_rows", lambda: nullcontext(without_rows))


def rule_file(folder: Path, receiver: str, relation: str = "mart.sweep") -> Path:
    file = folder / "alerts.toml"
    file.write_text(
        f'[[rule]]\nname = "x"\nrelation = "{relation}"\nkey = ["sweep_id"]\nwho = ["me"]\n[receiver.me]\n{receiver}\n'
    )
    return file


@pytest.mark.parametrize("place", ["settings", "alert rules"])
def test_a_notification_block_is_refused_at_the_start_where_no_prefect_server_is_configured(settings, tmp_path, place):
    block = "slack-webhook/watch"
    given = settings(notify_block=block)
    if place == "alert rules":
        given = settings(alerts=rule_file(tmp_path, f'block = "{block}"'))
    with pytest.raises(SettingsError, match="slack-webhook/watch") as refused:
        run(given)
    assert "PREFECT_API_URL" in refused.value.hint
    assert "NIGHTAUDIT_NOTIFY_WEBHOOK" in refused.value.hint
    assert not Path(given.lake).exists()


class Killed(BaseException):
    """The process ends here."""


def killed(*_, **__):
    raise Killed


@pytest.mark.slow
def test_a_night_that_was_killed_after_it_was_published_gets_its_pages_and_alerts_before_the_next(
    settings, tmp_path, monkeypatch
):
    with receiving() as (address, got):
        monkeypatch.setenv("ADDRESS", address)
        given = settings(alerts=rule_file(tmp_path, 'webhook_from = "ADDRESS"'))
        lake = Lake(given.lake)
        # Killed before its pages are written; and again, when another run has written them, before its alerts are sent.
        for step in ("write_reports", "send_alerts"):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(nightly, step, killed)
                with pytest.raises(Killed):
                    run(given)
            assert got == []
        (first,) = published(lake)
        second = run(given.model_copy(update={"sandbox_clock": AT + timedelta(days=1)})).sweep_id

    assert published(lake) == [first, second]
    digests = [lake.root / "reports" / sweep_id / "index.html" for sweep_id in (first, second)]
    assert all(digest.exists() for digest in digests)
    # An alert leads to the digest of its night; where another run wrote that, to the page over all nights.
    assert [first in got[0]["text"], str(digests[1]) in got[1]["text"]] == [True, True]
    assert len(got) == 2


def test_a_night_that_is_finished_is_not_finished_again(settings, first):
    given = settings()
    lake = Lake(given.lake)
    page = lake.root / "reports" / first.sweep_id / "index.html"
    page.unlink()
    nightly.finish_left_over(Night(given, lake))
    assert not page.exists()


def double(lake: Lake, sweep_id: str) -> None:
    """Store a file of a loaded sweep twice: what the gate is there for."""
    file = min((lake.table_root("offer") / sweep_id).glob("*.parquet"))
    file.with_name(f"{file.stem}9.parquet").write_bytes(file.read_bytes())


def load_doubled(settings) -> str:
    """Sweep and load a night, and store a file of it twice. Return its sweep."""
    lake = Lake(settings.lake)
    manifest = night_sweep.start(settings, lake, settings.clock())
    asyncio.run(night_sweep.collect(Night(settings, lake, manifest)))
    double(lake, manifest.sweep_id)
    return manifest.sweep_id


def test_a_blocked_night_is_reported_once_and_keeps_the_last_good_night(settings, first):
    with receiving() as (address, got):
        given = settings(notify_webhook=address, sandbox_clock=AT + timedelta(days=1))
        lake = Lake(given.lake)
        before = lake.published_file.read_bytes()
        blocked = load_doubled(given)
        for _ in range(2):
            with pytest.raises(GateBlocked, match=r"offer\.key") as caught:
                run(given)
            assert caught.value.exit_code == 3

    assert published(lake) == [first.sweep_id]
    assert lake.published_file.read_bytes() == before
    causes = [message["subject"].split()[1] for message in got]
    assert "offer.key" in causes
    assert len(causes) == len(set(causes))
    assert all(blocked in message["text"] and SIMULATED in message["text"] for message in got)


def test_the_command_exits_with_3_and_says_why_and_what_stays(settings, loaded, command):
    blocked = loaded
    double(Lake(settings().lake), blocked)
    with receiving() as (address, got):
        done = command("nightly", NIGHTAUDIT_NOTIFY_WEBHOOK=address)
    assert done.returncode == 3, done.stderr
    shown = " ".join((done.stdout + done.stderr).split())
    for said in (blocked, "offer.key", "--override", "quality.html", "Nothing is published"):
        assert said in shown
    assert "Traceback" not in shown
    assert "hidden-part" not in shown
    assert "offer.key" in {message["subject"].split()[1] for message in got}
    assert not Lake(settings().lake).published_file.exists()


@pytest.mark.parametrize("step", ["resume", "audit"])
def test_a_step_repeated_on_a_published_sweep_names_no_next_step(first, command, step):
    done = command(step, first.sweep_id)
    assert done.returncode == 0, done.stderr
    assert "It is already published." in done.stdout
    assert "with: nightaudit" not in done.stdout


@pytest.mark.slow
def test_a_night_by_the_command_imports_no_prefect_and_leaves_no_process_behind(tmp_path):
    script = tmp_path / "night.py"
    script.write_text(
        "import sys\n"
        "if __name__ == '__main__':\n"
        "    import psutil\n"
        "    from pipeline.cli.nightly import nightly\n"
        "    nightly(None)\n"
        "    from multiprocessing import forkserver, resource_tracker\n"
        "    print('prefect' in sys.modules, 'flows' in sys.modules)\n"
    )
    # With nothing of the user's own.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "NIGHTAUDIT_"))}
    given = {"NIGHTAUDIT_LAKE": "lake", "NIGHTAUDIT_WORKERS": "1", "NIGHTAUDIT_SPEC": str(write_spec_in(tmp_path))}
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**kept, **given, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "False False"
    assert done.stderr == ""
    left = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False).stdout
    assert left == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "stopped_at", "go_on"),
    [
        (signal.SIGTERM, "gate.stored_audit", "nightaudit publish {sweep_id}"),
        (signal.SIGTERM, "gate.nights_like", "nightaudit audit {sweep_id}"),
        (signal.SIGINT, "nightly.summary_of", "nightaudit nightly"),
    ],
)
def test_a_night_stopped_after_its_sweep_names_the_step_to_continue_with(
    loaded, command, monkeypatch, number, stopped_at, go_on
):
    before = signal.getsignal(number)

    def stop(*_, **__):
        heard_by = signal.getsignal(number)
        assert callable(heard_by), "it would end the tests"
        assert heard_by is not before
        os.kill(os.getpid(), number)

    monkeypatch.setattr(f"pipeline.night.{stopped_at}", stop)
    done = command("nightly")
    assert done.returncode == 128 + number, done.stderr
    assert "Traceback" not in done.stderr
    assert "Stopped as requested." in done.stderr
    assert go_on.format(sweep_id=loaded) in done.stderr


@pytest.mark.parametrize(
    ("failure", "exit_code", "said"),
    [
        (OSError(28, "No space left on device"), 6, "Free some space.\nThen: nightaudit audit {sweep_id}"),
        (OSError("Generic error: No space left on device (os error 28)"), 6, "Free some space."),
        (MemoryError(), 1, "ulimit -v"),
    ],
)
def test_what_the_system_refuses_in_an_audit_is_a_message_with_the_step_to_continue_with(
    loaded, command, monkeypatch, failure, exit_code, said
):
    def refused(*_, **__):
        raise failure

    monkeypatch.setattr("pipeline.night.gate.audit", refused)
    done = command("audit")
    assert done.returncode == exit_code, done.stderr
    assert said.format(sweep_id=loaded) in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("step", ["sweep", "nightly"])
def test_a_sweep_whose_every_search_was_refused_with_one_code_says_so_and_exits_with_4(command, step):
    done = command(step, NIGHTAUDIT_SEND_RATE_TYPE="false")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "refused every search, with code" in done.stderr
    assert "Traceback" not in done.stderr
