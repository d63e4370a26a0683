"""The commands as a user runs them: in a process of their own, against a real sandbox."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from free_port import free_port
from typer.main import get_command

from pipeline.domain.search import Operation
from pipeline.domain.shards import Partition
from pipeline.lake import Lake
from pipeline.lake.raw import Manifest, read_ending, write_manifest
from pipeline.night.overview import sweep_rows
from pipeline.sandbox.__main__ import app as sandbox_app
from pipeline.sandbox.faults.faults import Faults
from pipeline.sandbox.faults.faults_said import MEANINGS
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.sandbox.world.identifiers import property_ids

SPEC = """
[properties]
ids = {ids}
[stays]
nights = [1]
[[stays.horizon]]
to_days = {days}
[ask]
markets = {markets}
parties = ["2"]
currencies = ["EUR"]
batch = {batch}
"""


@pytest.fixture
def user(tmp_path):
    return User(tmp_path)


@pytest.fixture
def run_here(user, nightaudit):
    """Run a command of the user's in this process."""

    def run(*arguments: str, of: User = user) -> subprocess.CompletedProcess[str]:
        return nightaudit(of.home, *arguments, **of.environment)

    return run


class User:
    """A user in a folder of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.lake = home / "lake"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("NIGHTAUDIT_")}
        self.environment = kept | {"NIGHTAUDIT_LAKE": str(self.lake), "NIGHTAUDIT_WORKERS": "1", "COLUMNS": "200"}

    def write_spec(self, ids, days=2, markets=("GB",), batch=10) -> Path:
        path = self.home / "sweep.toml"
        path.write_text(SPEC.format(ids=list(ids), days=days, markets=json.dumps(list(markets)), batch=batch))
        return path

    def use_supplier(self, sandbox: SandboxProcess) -> None:
        self.environment |= {
            "NIGHTAUDIT_BASE_URL": sandbox.base_url,
            "NIGHTAUDIT_CLIENT_ID": sandbox.client_id,
            "NIGHTAUDIT_CLIENT_SECRET": sandbox.client_secret,
            "NIGHTAUDIT_REQUESTS_PER_SECOND": "500",
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "pipeline.cli", *arguments]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments), cwd=self.home, env=self.environment, capture_output=True, text=True, timeout=300
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.home,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def published(self, query: str) -> list[tuple]:
        with duckdb.connect(str(self.lake / "published" / "nightaudit.duckdb"), read_only=True) as session:
            return session.execute(query).fetchall()


@pytest.fixture(scope="module")
def supplier():
    with SandboxProcess(seed=3, properties=60) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def ids():
    return property_ids(3, 60)


def no_traceback(done: subprocess.CompletedProcess[str]) -> None:
    assert "Traceback" not in done.stdout + done.stderr


@pytest.fixture(scope="module")
def night(supplier, ids, tmp_path_factory):
    """A user with a published night, what the commands printed, and what the supplier had served before and after."""
    user = User(tmp_path_factory.mktemp("night"))
    user.use_supplier(supplier)
    before = supplier.control("served")
    swept = user.run("sweep", "--spec", str(user.write_spec(ids[:20])))
    published = user.run("publish")
    return user, (swept, published), (before, supplier.control("served"))


@pytest.mark.slow
def test_a_price_goes_all_the_way_from_a_real_supplier_to_a_query(night):
    user, (swept, published), (before, served) = night
    assert swept.returncode == 0, swept.stderr
    assert "Simulated" not in swept.stdout
    assert published.returncode == 0, published.stderr
    assert user.published("SELECT audit FROM mart.sweep") == [("passed",)]
    stored = user.published("SELECT count(*) FROM lake.offer")[0][0]
    assert stored == products_of(served) - products_of(before)
    planned, *statuses = user.published(
        "SELECT planned, offered, no_offer, absent, rejected, failed, not_swept FROM mart.sweep"
    )[0]
    assert planned == sum(statuses) == 40
    queried = user.run("query", "SELECT count(*) AS n FROM mart.offer_latest", "--format", "json")
    assert json.loads(queried.stdout)["n"] == stored


def products_of(served: dict) -> int:
    """Products that can be attributed to a property: a property without its id is one reject."""
    return served["products_served"].get("multi", 0) - served["products_without_property_id"].get("multi", 0)


def test_status_tells_each_sweep_and_its_cells(user, run_here, supplier, ids):
    user.use_supplier(supplier)
    assert "There is no lake" in run_here("status").stdout
    run_here("sweep", "--spec", str(user.write_spec(ids[:10])))
    reported = run_here("status").stdout
    assert "loaded" in reported
    assert "20 planned" in reported


def test_a_plan_costs_nothing_and_needs_no_supplier(user, run_here):
    planned = run_here("plan")
    assert planned.returncode == 0, planned.stderr
    assert "Cells" in planned.stdout
    assert not (user.lake / "raw").exists()


def test_a_limit_plans_the_first_properties_only(run_here):
    whole, limited = run_here("plan"), run_here("plan", "--limit", "3")
    cells = [int(re.search(r"Cells\D*([\d,]+)", done.stdout)[1].replace(",", "")) for done in (whole, limited)]
    assert cells[0] > cells[1] > 0
    assert cells[1] % 3 == 0


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["report", "--from", "tomorrow"], "--from"), (["report", "--to", "2027-02-30"], "--to"),
        (["export", "a.duckdb", "--to", "20270231"], "--to"), (["demo", "--until", "31.1.2027"], "--until"),
        (["case", "case-1", "--mute", "soon"], "--mute"), (["status", "--format", "xml"], "--format"),
        (["explain", "flag-1", "--format", "table"], "--format"), (["cases", "--format", "yaml"], "--format"),
    ],
)  # fmt: skip
def test_a_value_that_an_option_does_not_take_is_refused_with_the_value(run_here, arguments, option):
    done = run_here(*arguments)
    assert done.returncode == 2
    assert f"Invalid value for '{option}'" in done.stderr
    assert repr(arguments[-1]) in done.stderr
    assert "Value error" not in done.stderr


def test_the_sandboxs_help_describes_every_option(run_here):
    reported = run_here("sandbox", "--help").stdout
    options = {option.name: option.help for option in get_command(sandbox_app).params}
    assert len(options) > 15
    assert [name for name, meaning in options.items() if not meaning] == []
    assert all(word in reported for word in ("--host", "--faults", "8787"))
    # Each fault with what it does; no name is cut, and no line wrapped, at 80 columns.
    assert list(MEANINGS) == list(Faults.__struct_fields__)
    assert all(f"    {key:<23}  {meaning}\n" in reported for key, meaning in MEANINGS.items())
    assert "--rate-type-optional" in reported
    assert max(map(len, reported.splitlines())) <= 80


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ('markets = ["GB"]=>markets = ["UK"]', "UK"),
        ("nights = [1]=>nigths = [1]", "nigths"),
        ("batch = 10=>batch = 101", "batch"),
        ('parties = ["2"]=>parties = ["ten"]', "ten"),
        ("to_days = 2=>to_days = 0", "to_days"),
        ("ids = [=>ids = [oops", "sweep.toml"),
    ],
)
def test_a_mistake_in_a_spec_is_reported_with_its_place_and_exit_code_2(user, run_here, ids, change, reported):
    spec = user.write_spec(ids[:3])
    before, after = change.split("=>")
    spec.write_text(spec.read_text().replace(before, after))
    done = run_here("plan", "--spec", str(spec))
    assert done.returncode == 2
    assert reported in done.stderr
    no_traceback(done)


@pytest.mark.parametrize(
    ("name", "value", "reported"),
    [
        ("NIGHTAUDIT_BASE_URL", "nonsense", "NIGHTAUDIT_BASE_URL"),
        ("NIGHTAUDIT_ATTEMPTS", "0", "NIGHTAUDIT_ATTEMPTS"),
        ("NIGHTAUDIT_LAKE", "gs://bucket/lake", "on S3"),
        (
            "NIGHTAUDIT_SCHEDULE_CRON",
            "99 99 * * *",
            "'99 99 * * *' is not a valid cron expression",
        ),
        ("NIGHTAUDIT_SCHEDULE_CRON", "at night", "NIGHTAUDIT_SCHEDULE_CRON"),
        ("NIGHTAUDIT_SPEC", "missing.toml", "missing.toml"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(user, run_here, name, value, reported):
    user.environment[name] = value
    done = run_here("sweep")
    assert done.returncode == 2
    assert reported in done.stderr
    assert not user.lake.exists()
    no_traceback(done)


def test_bad_credentials_start_nothing_and_show_no_secret(user, run_here, supplier, ids):
    user.use_supplier(supplier)
    user.environment["NIGHTAUDIT_CLIENT_SECRET"] = "a-wrong-secret-4711"
    done = run_here("sweep", "--spec", str(user.write_spec(ids[:3])))
    assert done.returncode == 1
    assert "resume" in done.stderr
    assert "4711" not in done.stdout + done.stderr
    no_traceback(done)


def test_an_unreachable_host_is_reported_and_can_be_resumed(user, run_here, ids):
    port = free_port()
    with SandboxProcess(seed=3, properties=60, port=port) as gone:
        user.use_supplier(gone)
    user.environment |= {"NIGHTAUDIT_ATTEMPTS": "2"}
    spec = user.write_spec(ids[:3])
    done = run_here("sweep", "--spec", str(spec))
    assert done.returncode == 1
    assert "nightaudit resume" in done.stderr
    no_traceback(done)
    with SandboxProcess(seed=3, properties=60, port=port):
        resumed = run_here("resume")
    assert resumed.returncode == 0, resumed.stderr


def test_a_lake_holds_one_supplier(user, run_here, supplier, ids):
    user.use_supplier(supplier)
    spec = str(user.write_spec(ids[:3]))
    assert run_here("sweep", "--spec", spec).returncode == 0
    user.environment["NIGHTAUDIT_BASE_URL"] = "http://127.0.0.1:9"
    done = run_here("sweep", "--spec", spec)
    assert done.returncode == 2
    assert "another lake" in done.stderr


@pytest.fixture
def mistyped(user, run_here, supplier, ids):
    """A lake whose first sweep went to an address where no server listens."""
    user.use_supplier(supplier)
    spec = str(user.write_spec(ids[:3]))
    user.environment |= {"NIGHTAUDIT_SPEC": spec, "NIGHTAUDIT_ATTEMPTS": "1"}
    right, user.environment["NIGHTAUDIT_BASE_URL"] = user.environment["NIGHTAUDIT_BASE_URL"], "http://127.0.0.1:1"
    assert run_here("sweep").returncode == 1
    user.environment["NIGHTAUDIT_BASE_URL"] = right
    (sweep_id,) = Lake(str(user.lake)).sweep_ids()
    return sweep_id


def test_a_mistyped_address_ties_no_lake_to_it(user, run_here, mistyped):
    reported = run_here("status").stdout
    assert "used the supplier 127.0.0.1:1; the settings name" in reported
    assert "nightaudit sweep" in reported
    assert "resume" not in reported
    refused = run_here("resume")
    assert refused.returncode == 2
    assert "nightaudit sweep" in refused.stderr
    done = run_here("sweep")
    assert done.returncode == 0, done.stderr
    assert [mistyped] != Lake(str(user.lake)).sweep_ids()
    assert len(Lake(str(user.lake)).sweep_ids()) == 1


def test_a_sweep_is_closed_without_its_supplier_and_another_follows(user, run_here, mistyped):
    closed = run_here("resume", "--close")
    assert closed.returncode == 0, closed.stderr
    assert run_here("sweep").returncode == 0
    rows = sweep_rows(Lake(str(user.lake)))
    # Two sweeps of one second come in any order.
    (other,) = rows.keys() - {mistyped}
    assert [(rows[each]["planned"], rows[each]["not_swept"]) for each in (mistyped, other)] == [(6, 6), (6, 0)]


# The first shard of 32 searches lands after about a second, the last of these sweeps after more than ten.
SLOW = {"latency_ms": 150}


@pytest.fixture
def stopped(user, ids):
    """A user whose sweep was stopped when a part of it had landed; the supplier is gone."""
    with SandboxProcess(seed=3, properties=60, faults=SLOW) as slow:
        user.use_supplier(slow)
        sweep = user.start("sweep", "--spec", str(user.write_spec(ids, days=60)))
        wait_for(lambda: list(user.lake.glob("raw/*/*.parquet")))
        os.killpg(sweep.pid, signal.SIGTERM)
        sweep.communicate(timeout=300)
    return user


@pytest.mark.slow
def test_a_refused_close_changes_nothing_and_a_close_counts_unsent_searches(run_here, supplier, stopped):
    stopped.use_supplier(supplier)
    lake = Lake(str(stopped.lake))
    (sweep_id,) = lake.sweep_ids()
    assert f"nightaudit resume --close {sweep_id}" in run_here("status").stdout
    refused = run_here("resume", sweep_id)
    assert refused.returncode == 2
    assert f"nightaudit resume --close {sweep_id}" in refused.stderr
    assert read_ending(lake, sweep_id) is None
    closed = run_here("resume", "--close")
    assert closed.returncode == 0, closed.stderr
    row = sweep_rows(lake)[sweep_id]
    assert row["planned"] == 3600
    assert 0 < row["not_swept"] < 3600
    assert row["offered"] > 0


def test_a_cap_that_no_day_gets_further_with_is_refused_before_a_sweep_is_begun(user, run_here):
    user.environment["NIGHTAUDIT_DAILY_CALLS"] = "10"
    spec = str(user.write_spec(sorted(property_ids(1, 3000))[:2], days=12))
    planned = run_here("plan", "--spec", spec)
    assert "10 calls a day: never" in planned.stdout
    assert "12 searches of this sweep land together" in planned.stdout
    done = run_here("sweep", "--spec", spec)
    assert done.returncode == 2
    assert "12 searches of this sweep land together" in done.stderr
    assert Lake(str(user.lake)).sweep_ids() == []


@pytest.mark.parametrize("sweep_id", ["../x", "/etc", "nonsense"])
def test_what_is_no_sweep_id_is_refused(user, run_here, sweep_id):
    user.lake.mkdir()
    done = run_here("resume", sweep_id)
    assert done.returncode == 2
    assert "holds no sweep" in done.stderr


def test_a_lake_of_a_newer_version_is_left_alone(user, run_here):
    user.lake.mkdir()
    (user.lake / "lake.json").write_text('{"format": 99}')
    done = run_here("status")
    assert done.returncode == 1
    assert "newer version" in done.stderr
    no_traceback(done)


def test_a_query_that_cannot_be_run_is_reported(run_here):
    done = run_here("query", "SELECT 1")
    assert done.returncode == 2
    assert "nightaudit nightly" in done.stderr


@pytest.mark.parametrize(
    "command", [["status"], ["query", "SELECT 1"], ["drift"], ["show", "raw/x/multi-GB-000000.parquet#0"]]
)
def test_looking_at_a_lake_that_is_not_there_makes_none_and_names_the_place(user, run_here, command):
    done = run_here(*command)
    assert str(user.lake) in done.stdout + done.stderr
    assert not user.lake.exists()


@pytest.mark.parametrize(
    "command",
    [
        ["rebuild"],
        ["publish"],
        ["audit"],
        ["resume"],
        ["lake", "--apply"],
        ["lake"],
        ["verify"],
        ["quote", "--sample", "1"],
    ],
)
def test_work_on_a_lake_that_is_not_there_is_refused_and_makes_none(user, run_here, command):
    done = run_here(*command)
    assert done.returncode == 2
    assert f"There is no lake at {user.lake} (NIGHTAUDIT_LAKE)" in done.stderr
    assert "nightaudit nightly" in done.stderr
    assert not user.lake.exists()


def test_an_error_is_a_line_of_a_log_in_json(user, run_here):
    user.environment["NIGHTAUDIT_LOG_FORMAT"] = "json"
    done = run_here("audit")
    (line,) = map(json.loads, done.stderr.splitlines())
    assert (line["level"], line["exit_code"], done.returncode) == ("error", 2, 2)
    assert line["message"].startswith("There is no lake at ")
    assert "nightaudit nightly" in line["hint"]


@pytest.mark.parametrize("output", ["missing/x.prom", "."])
def test_metrics_that_cannot_be_written_are_a_message(user, run_here, output):
    place = user.home / output
    done = run_here("metrics", "--output", str(place))
    assert done.returncode == 2
    assert f"{place} cannot be written: " in done.stderr
    no_traceback(done)


@pytest.mark.parametrize("words", [["pull", ".", "{}"], ["export", "{}"], ["metrics", "-o", "{}"]])
def test_an_address_is_not_written_to_as_if_it_were_a_folder(user, run_here, words):
    done = run_here(*(word.format("s3://AKIA:secret@bucket/there") for word in words))
    assert done.returncode == 2
    assert "must be a path on this machine, not an address" in " ".join(done.stderr.replace("│", "").split())
    assert "secret" not in done.stdout + done.stderr
    assert not list(user.home.rglob("s3*"))


@pytest.mark.parametrize("words", [["query", "SELECT 1", "--format", "csv"], ["metrics"]])
@pytest.mark.parametrize("place", ["lake.json", "published/nightaudit.duckdb", "raw/of/a/sweep.parquet"])
def test_no_output_replaces_a_file_of_a_lake(run_here, night, words, place):
    target = night[0].lake / place
    before = target.read_bytes() if target.exists() else None
    done = run_here(*words, "--output", str(target))
    assert done.returncode == 2
    assert "must not be in a lake" in " ".join(done.stderr.replace("│", "").split())
    assert (target.read_bytes() if target.exists() else None) == before


@pytest.mark.parametrize("words", [["query", "SELECT 1", "--format", "csv", "-o"], ["export"], ["pull", "lake"]])
def test_a_folder_of_a_lake_that_is_a_link_or_has_lost_its_lake_json_is_still_its_own(tmp_path, run_here, words):
    for name in ("checksums", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "raw").symlink_to(tmp_path / "elsewhere")
    done = run_here(*words, str(tmp_path / "raw" / "x"))
    assert done.returncode == 2
    assert "must not be in a lake" in " ".join(done.stderr.replace("│", "").split())
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("place", ["x.duckdb", "published/x.duckdb", "raw/of/a/x.duckdb"])
def test_no_file_is_exported_into_a_lake(run_here, night, place):
    target = night[0].lake / place
    done = run_here("export", str(target))
    assert done.returncode == 2
    assert "must not be in a lake" in " ".join(done.stderr.replace("│", "").split())
    assert not target.exists()


@pytest.mark.parametrize("folder", ["file", "file/in-it"])
def test_a_folder_that_cannot_be_pulled_into_is_a_message(user, run_here, night, folder):
    (user.home / "file").write_text("a file, no folder")
    done = run_here("pull", str(night[0].lake), str(user.home / folder))
    assert done.returncode == 2
    assert "is not a folder that can be written to" in done.stderr
    no_traceback(done)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--port", "99999"], "'--port': must be at most 65535"),
        (["--port", "-1"], "'--port': must be at least 0"),
        (["--faults", "{bad"], "'--faults': JSON is malformed"),
        (["--faults", "@/nowhere/faults.json"], "'--faults': /nowhere/faults.json cannot be read"),
        (["--faults", "@/dev/null"], "'--faults': /dev/null cannot be read: it is not a file"),
        (["--clock", "soon"], "'--clock': 'soon' is not an instant like 2026-10-01T02:00:00Z"),
        (["--clock", "2026-10-01T02:00:00"], "'--clock': '2026-10-01T02:00:00' has no time zone"),
        (["--today", "soon"], "'--today': 'soon' is not a date like 2026-10-01"),
        (["--plant-share", "2"], "'--plant-share': must be at most 1"),
        (["--missing-share", "-1"], "'--missing-share': must be at least 0"),
        (["--story", "-3"], "'--story': must be at least 0"),
    ],
)
def test_a_wrong_option_of_the_sandbox_is_named(run_here, arguments, named):
    done = run_here("sandbox", *arguments)
    assert done.returncode == 2
    assert named in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("relation", ["mart.offer_latest", "lake.offer"])
def test_a_moved_lake_is_said_to_be_moved(user, run_here, night, relation):
    shutil.copytree(night[0].lake, user.lake)
    night[0].lake.rename(moved := night[0].lake.with_name("elsewhere"))
    try:
        done = run_here("query", f"FROM {relation} LIMIT 1")
    finally:
        moved.rename(night[0].lake)
    assert "The lake was moved" in done.stderr
    assert "nightaudit publish" in done.stderr


def test_json_is_valid_whatever_the_query_yields(user, run_here):
    file = user.lake / "published" / "nightaudit.duckdb"
    file.parent.mkdir(parents=True)
    duckdb.connect(str(file)).close()
    done = run_here("query", "--format", "json", "SELECT 'nan'::DOUBLE AS a, [1, '-inf'::DOUBLE] AS b, NULL AS c")
    assert json.loads(done.stdout) == {"a": "nan", "b": [1, "-inf"], "c": None}
    times = "SELECT TIMESTAMPTZ '2030-01-02 03:04:05Z' AS an_instant, DATE '2030-01-02' AS a_date, [a_date] AS dates"
    answered = json.loads(run_here("query", "--format", "json", times).stdout)
    assert answered == {"an_instant": "2030-01-02T03:04:05+00:00", "a_date": "2030-01-02", "dates": ["2030-01-02"]}


@pytest.mark.parametrize("command", [["status"], ["status", "--format", "json"], ["query", "SELECT 1"]])
def test_a_damaged_published_file_is_reported_with_what_to_do(user, run_here, command):
    file = user.lake / "published" / "nightaudit.duckdb"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"damaged" * 1000)
    parts = (Partition(Operation.MULTI, "GB", 0, 1),)
    manifest = Manifest("s", datetime.now(UTC), date(2030, 1, 1), True, "sandbox", "", (), parts, 1, True, 1, "", "")
    write_manifest(Lake(str(user.lake)), manifest)
    done = run_here(*command)
    assert f"{file} cannot be read" in done.stdout + done.stderr
    assert "nightaudit publish" in done.stdout + done.stderr


def test_a_query_reads_and_nothing_else(run_here, night):
    for query in ("", "COPY (SELECT 1) TO 'evil.csv'", "ATTACH 'x.duckdb'", "SELECT 1; SELECT 2"):
        done = run_here("query", query, of=night[0])
        assert (done.returncode, "Only a single read-only statement" in done.stderr) == (2, True), query
    assert not (night[0].home / "evil.csv").exists()


@pytest.mark.slow
def test_ctrl_c_lands_what_is_in_hand_and_says_how_to_resume(user, run_here, ids):
    port = free_port()
    with SandboxProcess(seed=3, properties=60, port=port, faults=SLOW) as slow:
        user.use_supplier(slow)
        spec = user.write_spec(ids, days=30, markets=("GB", "SE"))
        sweep = user.start("sweep", "--spec", str(spec))
        wait_for(lambda: list(user.lake.glob("raw/*/*.parquet")))
        os.killpg(sweep.pid, signal.SIGINT)
        out, err = sweep.communicate(timeout=300)
        assert sweep.returncode == 130, out + err
        assert re.search(r"Stopping after .* open searches; press Ctrl-C again to stop at once", err)
        assert "nightaudit resume" in err
        assert not re.search("Traceback|never retrieved|Exception ignored|leaked|resource_tracker", err), err
        asked_before = slow.control("served")["requests"]
    with SandboxProcess(seed=3, properties=60, port=port):
        resumed = run_here("resume")
        assert resumed.returncode == 0, resumed.stderr
    assert asked_before
    (row,) = sweep_rows(Lake(str(user.lake))).values()
    assert (row["planned"], row["not_swept"]) == (60 * 30 * 2, 0)


def test_too_many_failures_end_with_exit_code_4(user, run_here, ids):
    with SandboxProcess(seed=3, properties=60, faults={"poisoned_property_ids": ids[:2]}) as sandbox:
        user.use_supplier(sandbox)
        user.environment["NIGHTAUDIT_ATTEMPTS"] = "1"
        done = run_here("sweep", "--spec", str(user.write_spec(ids[:10])))
    assert done.returncode == 4, done.stdout + done.stderr
    assert "20.0%" in done.stderr
    assert "20.0% of the planned cells" in run_here("status").stdout


def test_the_doctor_names_what_is_wrong(user, run_here, supplier, ids):
    user.use_supplier(supplier)
    spec = str(user.write_spec(ids[:3]))
    well = run_here("doctor", "--spec", spec)
    assert well.returncode == 0, well.stdout + well.stderr
    user.environment["NIGHTAUDIT_CLIENT_SECRET"] = "wrong"
    ill = run_here("doctor", "--spec", spec)
    assert ill.returncode == 1
    assert "✗ token and probe search" in ill.stdout
    assert "See the lines marked ✗ above." in ill.stderr
    no_traceback(ill)
    for_programs = run_here("doctor", "--spec", spec, "--format", "json")
    assert for_programs.returncode == 1
    assert [line["check"] for line in map(json.loads, for_programs.stdout.splitlines()) if not line["is_passed"]]
    # JSON has no mark.
    assert "✗" not in for_programs.stdout + for_programs.stderr
    assert 'See the lines with `"is_passed": false` above.' in for_programs.stderr


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("load pr", "prices\nproperty-map\nproperties"),
        ("report d", "digest"),
        ("query --format x", "xlsx"),
        ("hea", "health"),
    ],
)
def test_a_shell_completes_commands_options_and_arguments(user, words, offered):
    typed = f"nightaudit {words}"
    user.environment |= {
        "_NIGHTAUDIT_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    installed = [str(Path(sys.executable).with_name("nightaudit"))]
    done = subprocess.run(installed, cwd=user.home, env=user.environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == offered


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from typer.testing import CliRunner; from pipeline.cli.commands import app; "
        "result = CliRunner().invoke(app, ['--help']); assert result.exit_code == 0; "
        "heavy = {'prefect', 'pyarrow', 'duckdb', 'httpx', 'pydantic', 'polars', 'great_expectations'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def wait_for(condition, seconds: float = 120.0):
    until = datetime.now(UTC) + timedelta(seconds=seconds)
    while datetime.now(UTC) < until:
        if found := condition():
            return found
        time.sleep(0.02)
    pytest.fail("it did not happen in time")
