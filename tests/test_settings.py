"""Settings are read once, checked, and named if they cannot be used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from typer.testing import CliRunner

from pipeline.cli.commands import app
from pipeline.domain.analysis import Analysis
from pipeline.domain.errors import SettingsError
from pipeline.settings import PREFIX, Credentials, Settings, read_settings, utc_now
from pipeline.spec import spec_keys

OUTSIDE = {"base_url": "https://supplier.example", "client_id": "a", "client_secret": "b"}


@pytest.fixture(autouse=True)
def no_settings_around(monkeypatch, tmp_path):
    """No .env, and no settings of the machine that runs the tests."""
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(f"{PREFIX}{name.upper()}", raising=False)
    return monkeypatch


def test_without_any_setting_the_sandbox_stands_in():
    settings = read_settings()
    assert settings.is_simulated
    assert (settings.rate, settings.in_flight, settings.lake) == (500, 8, "lake")


def test_an_outside_supplier_is_asked_politely_unless_set_otherwise():
    settings = read_settings(**OUTSIDE)
    assert not settings.is_simulated
    assert (settings.rate, settings.in_flight) == (5, 4)
    asked = read_settings(**OUTSIDE, requests_per_second=20, concurrency=10)
    assert (asked.rate, asked.in_flight) == (20, 10)


def test_the_environment_is_read_and_empty_values_count_as_unset(no_settings_around):
    no_settings_around.setenv("NIGHTAUDIT_LAKE", "/srv/lake")
    no_settings_around.setenv("NIGHTAUDIT_CREDENTIALS", "body")
    no_settings_around.setenv("NIGHTAUDIT_BASE_URL", "")
    settings = read_settings()
    assert (settings.lake, settings.credentials, settings.base_url) == ("/srv/lake", Credentials.BODY, None)


def test_arguments_take_precedence_over_the_environment_and_that_over_the_file(no_settings_around, tmp_path):
    (tmp_path / ".env").write_text("NIGHTAUDIT_LAKE=file\nNIGHTAUDIT_WORKERS=3\nNIGHTAUDIT_ATTEMPTS=7\nOTHER=1\n")
    no_settings_around.setenv("NIGHTAUDIT_LAKE", "environment")
    no_settings_around.setenv("NIGHTAUDIT_WORKERS", "5")
    settings = read_settings(lake="given")
    assert (settings.lake, settings.workers, settings.attempts) == ("given", 5, 7)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"base_url": "supplier.example"}, "NIGHTAUDIT_BASE_URL: 'supplier.example' is not an address"),
        ({"base_url": "ftp://supplier.example"}, "NIGHTAUDIT_BASE_URL"),
        ({"auth_url": "https://"}, "NIGHTAUDIT_AUTH_URL"),
        ({"base_url": "https://supplier.example"}, "NIGHTAUDIT_CLIENT_SECRET"),
        ({"base_url": "https://supplier.example/?key=1"}, "NIGHTAUDIT_BASE_URL: a base address must not carry a query"),
        ({"requests_per_second": 0}, "NIGHTAUDIT_REQUESTS_PER_SECOND"),
        ({"concurrency": 0}, "NIGHTAUDIT_CONCURRENCY"),
        ({"daily_calls": 0}, "NIGHTAUDIT_DAILY_CALLS"),
        ({"attempts": 0}, "NIGHTAUDIT_ATTEMPTS"),
        *(
            ({name: "inf"}, f"NIGHTAUDIT_{name.upper()}")
            for name in (
                *("connect_timeout_seconds", "read_timeout_seconds", "grace_hours", "query_seconds"),
                *("audit_deviations", "requests_per_second"),
            )
        ),
        ({"credentials": "cookie"}, "NIGHTAUDIT_CREDENTIALS"),
        ({"tolerated_failed_share": 1.5}, "NIGHTAUDIT_TOLERATED_FAILED_SHARE"),
        ({"total_role": "gross"}, "NIGHTAUDIT_TOTAL_ROLE"),
        ({"schedule_timezone": "Europe/Atlantis"}, "NIGHTAUDIT_SCHEDULE_TIMEZONE: 'Europe/Atlantis'"),
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_used_is_named_with_the_reason(given, named):
    with pytest.raises(SettingsError, match="Nothing was started") as caught:
        read_settings(**given)
    assert named in str(caught.value)
    assert caught.value.exit_code == 2


def test_all_settings_that_cannot_be_used_are_named_at_once():
    with pytest.raises(SettingsError) as caught:
        read_settings(concurrency=0, attempts=0)
    assert "NIGHTAUDIT_CONCURRENCY" in str(caught.value)
    assert "NIGHTAUDIT_ATTEMPTS" in str(caught.value)


def test_an_address_with_a_password_is_refused_and_the_password_is_not_repeated():
    with pytest.raises(SettingsError) as caught:
        read_settings(**OUTSIDE | {"base_url": "https://me:hunter2@supplier.example"})
    assert "must not carry a user or password" in str(caught.value)
    assert "hunter2" not in str(caught.value)


# Where a user may have pasted a key: a signed link, a line of settings, an option, an address encoded once or twice.
WITH_KEYS = [
    "bucket.s3.amazonaws.com/lake?X-Amz-Security-Token=hunter2",
    "bucket.s3.amazonaws.com/lake?hunter2",
    "//host/lake?X-Amz-Signature=hunter2",
    "/srv/lake?X-Amz-Signature=hunter2",
    "s3://bucket/p?X-Amz-Security-Token%3Dhunter2",
    "s3://bucket/a#X-Amz-Signature=hunter2",
    "s3://bucket/p&X-Amz-Credential=hunter2",
    "s3://bucket/p|sig=hunter2",
    "./lake;token=hunter2",
    "s3://bucket/secret_key=hunter2",
    "s3://bucket/x-amz-security-token:hunter2",
    's3://bucket/{"secret_key": "hunter2"}',
    "s3://bucket/p AWS_SECRET_ACCESS_KEY=hunter2",
    "s3://bucket/p\nAWS_SECRET_ACCESS_KEY=hunter2",
    "s3://bucket/p,secret_key=hunter2",
    "s3://bucket/p secret_key: hunter2",
    "s3://bucket/p --secret-key hunter2",
    "s3://AKIA/hunter2@bucket/p",
    "s3:///hunter2@bucket",
    "s3://bucket/AKIA1:hunter2@bucket",
    "s3://AKIAIOSFODNN7EXAMPLE/hunter2",
    "s3://AKIA%3Ahunter2%40bucket/p",
    "s3://AKIA%253Ahunter2%2540bucket/p",
    f"s3://AKIA%{'25' * 20}3Ahunter2%{'25' * 20}40bucket/p",
    "//hunter2@host/lake",
    "https://hunter2@host/lake",
    "/AKIA1:hunter2@bucket/x",
    "./s3://k:hunter2@b",
    "/x --secret-access-key hunter2 ",
    "./lake?sig=hunter2",
    "/x?api_key=hunter2",
]


def test_keys_in_the_address_of_a_lake_are_refused_and_not_repeated():
    at_bucket = ("s3://AKIA1:hunter2@bucket/prefix", "s3://hunter2@bucket", "s3://AKIA1:hun/ter2hunter2@bucket")
    mistyped = (" s3://AKIA1:hunter2@bucket", "s3:/AKIA1:hunter2@bucket", "S3A://AKIA1:hun/ter2hunter2@bucket")
    quoted = ('"s3://AKIA1:hunter2@bucket"', "<s3://AKIA1:hunter2@bucket>")
    elsewhere = ("https://AKIA1:hunter2@store/bucket", "postgresql://me:hunter2@host/lake")
    in_a_query = ("postgresql://host/lake?password=hunter2", "az://box/lake?sig=hunter2", "s3://bucket?secret=hunter2")
    of_a_file = ("//me:hunter2@host/lake", "file://me:hunter2@host/lake", "'//me:hunter2@host'")
    alone = ("s3:AKIA1:hunter2@bucket", "AKIA1:hunter2@bucket/prefix", "lake=s3://AKIA1:hunter2@bucket")
    alone += ("s3 ://AKIA1:hunter2@bucket", "store:9000/bucket?key=hunter2", "s3//AKIA1:hun/ter2hunter2@bucket/p")
    alone += ("AKIA1:hun/ter2hunter2@bucket", "export NIGHTAUDIT_LAKE=s3://AKIA1:hunter2@b", "s3://b/p;secret=hunter2")
    alone += (
        "file://AKIA1:hun/ter2hunter2@b",
        "s3://b/p#secret_key=hunter2",
        "NIGHTAUDIT_LAKE: s3://A:hun/ter2hunter2@b",
    )
    for address in (*at_bucket, *mistyped, *quoted, *elsewhere, *in_a_query, *of_a_file, *alone, *WITH_KEYS):
        with pytest.raises(SettingsError) as caught:
            read_settings(lake=address)
        assert "AWS_ACCESS_KEY_ID" in str(caught.value)
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("address", WITH_KEYS)
def test_no_command_prints_the_keys_in_an_address(nightaudit, tmp_path, address):
    for ran in (
        nightaudit(tmp_path, "status", NIGHTAUDIT_LAKE=address),
        nightaudit(tmp_path, "pull", address, "new", NIGHTAUDIT_LAKE="lake"),
    ):
        assert ran.returncode == 2
        assert "must not carry keys" in " ".join(ran.stderr.replace("│", "").split())
        assert "hunter2" not in ran.stdout + ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_address_that_no_lake_can_have_is_not_printed(nightaudit, tmp_path):
    ran = nightaudit(tmp_path, "status", NIGHTAUDIT_LAKE="https://chat.example/hooks/hunter2")
    assert ran.returncode == 2
    assert "neither a folder nor on S3" in ran.stderr
    assert "hunter2" not in ran.stdout + ran.stderr


@pytest.mark.parametrize(
    "folder",
    [
        "lake",
        "/srv/a:b/lake",
        "s3://my-bucket/team@home/a:b",
        "/x:1/a?",
        "file:///srv/a:b/x@y",
        "./me@home/lake",
        "/srv/x@y:z",
        "lake=1/x",
        "file:///srv/lake",
        "s3://bucket/a@b",
        "s3://secrets-team/keys/night audit",
        "s3://my.bucket-1/year=2026",
        "/srv/key:1/my secret lake",
        "/data/partition_key=3/monkey=1/author=bob",
        "/srv/100%/lake",
        "/srv/a%20b",
    ],
)
def test_a_folder_or_bucket_without_keys_is_taken_as_it_is(folder):
    assert read_settings(lake=folder).lake == folder


@pytest.mark.parametrize("name", ["client_id", "client_secret", "scopes"])
def test_a_credential_that_is_no_text_is_refused_and_not_repeated(name):
    given = {"base_url": "https://supplier.example", "client_id": "a", "client_secret": "b"}
    with pytest.raises(SettingsError, match=f"NIGHTAUDIT_{name.upper()} is not text in UTF-8") as refused:
        read_settings(**(given | {name: "\udcffhunter2"}))
    assert "hunter2" not in str(refused.value)


def test_a_password_in_the_address_of_a_cluster_is_refused_and_not_repeated():
    with pytest.raises(SettingsError, match="NIGHTAUDIT_CLUSTER: this is not a scheduler") as caught:
        read_settings(cluster="tls://me:hunter2@scheduler.example:8786")
    assert "hunter2" not in str(caught.value)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=4))
def test_a_secret_that_stands_in_the_wrong_place_is_not_repeated(secret):
    with pytest.raises(SettingsError) as caught:
        read_settings(client_secret=["x", secret])
    assert repr(["x", secret]) not in str(caught.value)


def test_addresses_lose_their_last_slash():
    assert read_settings(**OUTSIDE | {"base_url": "https://supplier.example/api/"}).base_url == (
        "https://supplier.example/api"
    )


def test_settings_cannot_be_changed():
    with pytest.raises(ValidationError):
        read_settings().lake = "elsewhere"


def test_every_setting_says_what_it_is_for():
    assert all(field.description for field in Settings.model_fields.values())


AT = datetime(2026, 10, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize("text", ["2026-10-01T02:00:00Z", "2026-10-01 02:00:00+00:00", "2026-10-01T04:00:00+02:00"])
def test_a_clock_of_the_sandbox_stands_still_at_its_instant(text, no_settings_around):
    no_settings_around.setenv("NIGHTAUDIT_SANDBOX_CLOCK", text)
    clock = read_settings().clock
    assert (clock(), clock()) == (AT, AT)
    assert clock().tzinfo is UTC


def test_without_a_clock_the_real_time_is_reported():
    assert read_settings().clock is utc_now


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("2026-10-01T02:00:00", "names no time zone; 2026-10-01T02:00:00Z is in UTC"),
        ("2026-10-01", "names no time zone"),
        ("last night", "'last night' is not an instant like 2026-10-01T02:00:00Z"),
        ("0001-01-01T00:00:00Z", "the year 1 is not from 2000 to 2199"),
        ("9999-12-31T23:59:59-01:00", "the year 9999"),
    ],
)
def test_a_clock_that_names_no_instant_is_refused_with_the_reason(text, named):
    with pytest.raises(SettingsError, match="NIGHTAUDIT_SANDBOX_CLOCK") as caught:
        read_settings(sandbox_clock=text)
    assert named in str(caught.value)


def test_a_supplier_takes_no_clock():
    with pytest.raises(SettingsError, match="NIGHTAUDIT_BASE_URL names a supplier") as caught:
        read_settings(**OUTSIDE, sandbox_clock=AT)
    assert caught.value.exit_code == 2


def test_a_misspelt_name_is_warned_of_with_the_setting_it_is_like(no_settings_around, tmp_path, caplog):
    no_settings_around.setenv("NIGHTAUDIT_CONCURENCY", "3")
    (tmp_path / ".env").write_text(
        "# NIGHTAUDIT_LAAKE=no\nexport NIGHTAUDIT_CLIENT_SECRETS=hush\nNIGHTAUDIT_SPEC=x.toml\n"
    )
    for _ in range(2):
        read_settings()
    assert [record.getMessage() for record in caplog.records] == [
        "NIGHTAUDIT_CLIENT_SECRETS is not a setting and has no effect; did you mean NIGHTAUDIT_CLIENT_SECRET?",
        "NIGHTAUDIT_CONCURENCY is not a setting and has no effect; did you mean NIGHTAUDIT_CONCURRENCY?",
    ]


def test_a_name_that_is_like_no_setting_is_warned_of_unless_alert_rules_name_it(no_settings_around, tmp_path, caplog):
    for name in ("NIGHTAUDIT_TEAM_HOOK", "NIGHTAUDIT_FOO"):
        no_settings_around.setenv(name, "1")
    unknown = "NIGHTAUDIT_FOO is neither a setting nor named in a file of alert rules, and has no effect."
    rules = tmp_path / "alerts.toml"
    rules.write_text('[receiver.team]\nwebhook_from = "NIGHTAUDIT_TEAM_HOOK"\n')
    for _ in range(2):
        read_settings(alerts=rules)
    assert [record.getMessage() for record in caplog.records] == [unknown]
    # Without rules nothing reads the other one either; what makes them unreadable is for `alerts` to say.
    read_settings(alerts=tmp_path)
    assert [record.getMessage() for record in caplog.records][1:] == [unknown.replace("FOO", "TEAM_HOOK")]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("NIGHTAUDIT_URL", "NIGHTAUDIT_BASE_URL or NIGHTAUDIT_AUTH_URL or NIGHTAUDIT_PAGES_URL"),
        ("NIGHTAUDIT_MARKET", "NIGHTAUDIT_MARKETS or NIGHTAUDIT_REFERENCE_MARKET"),
        ("NIGHTAUDIT_SECRET", "NIGHTAUDIT_CLIENT_SECRET"),
        ("NIGHTAUDIT_TIMEOUT", "NIGHTAUDIT_CONNECT_TIMEOUT_SECONDS or NIGHTAUDIT_READ_TIMEOUT_SECONDS"),
    ],
)
def test_a_name_that_lacks_a_word_is_warned_of_with_the_settings_that_have_it(no_settings_around, caplog, given, meant):
    no_settings_around.setenv(given, "3")
    read_settings()
    assert f"{given} is not a setting and has no effect; did you mean {meant}?" in caplog.text


@pytest.mark.parametrize(
    ("held", "named"),
    [
        (b"NIGHTAUDIT_WORKERS=3\nNIGHTAUDIT_LAKE=\xff\n", "line 2: not UTF-8"),
        (b'NIGHTAUDIT_WORKERS=3\n\nNIGHTAUDIT_BASE_URL="https://hush.example\n', "line 3: not of the form"),
        (b"NIGHTAUDIT_REQUESTS_PER_SECOND 1 hush\n=2\n", "lines 1, 2: not of the form"),
        (b"# \n" * 400_000, "it is larger than 1,000,000 bytes"),
    ],
)
def test_a_line_of_the_env_file_that_cannot_be_read_is_refused_and_not_repeated(tmp_path, held, named):
    (tmp_path / ".env").write_bytes(held)
    with pytest.raises(SettingsError, match=rf"\.env cannot be read: {named}") as caught:
        read_settings()
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "it is a pipe or a device"),
        (lambda place: place.symlink_to("/dev/zero"), "it is a pipe or a device"),
        (lambda place: place.symlink_to("settings-elsewhere"), "No such file"),
        (lambda place: place.symlink_to(place.name), "Too many levels of symbolic links"),
    ],
)
def test_an_env_file_that_is_none_is_neither_waited_for_nor_read_without_end(tmp_path, make, why):
    make(tmp_path / ".env")
    shown = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", "health"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert shown.returncode == 2
    assert shown.stderr.startswith(f"{tmp_path}/.env cannot be read: {why}")
    assert "Correct that file, or move it away." in shown.stderr


def test_a_python_environment_of_that_name_is_left_alone(tmp_path):
    (tmp_path / ".env").mkdir()
    assert read_settings().is_simulated


@pytest.mark.parametrize(
    ("given", "reported"), [("UK", "'UK' is not one of the 36 market codes"), ("gb", "did you mean GB")]
)
def test_a_reference_market_that_does_not_exist_is_refused_at_once(no_settings_around, given, reported):
    no_settings_around.setenv("NIGHTAUDIT_REFERENCE_MARKET", given)
    with pytest.raises(SettingsError, match=reported):
        read_settings()


@pytest.mark.parametrize("cron", ["at night", "99 99 * * *", "0 0 30 2 *", "30 2 * *", "0 30 2 * * *", "@daily"])
def test_a_schedule_that_is_no_cron_expression_or_that_no_day_fits_is_named(cron):
    with pytest.raises(SettingsError, match="NIGHTAUDIT_SCHEDULE_CRON"):
        read_settings(_env_file=None, schedule_cron=cron)


@pytest.mark.parametrize("cron", ["30 2 * * *", "0 2 * * MON-FRI", "*/15 0-4 1,15 jan 0"])
def test_a_schedule_is_what_cron_understands(cron):
    assert read_settings(_env_file=None, schedule_cron=cron).schedule_cron == cron


def test_the_daily_calls_are_one_or_more():
    assert read_settings(_env_file=None, daily_calls=1).daily_calls == 1
    with pytest.raises(SettingsError, match="NIGHTAUDIT_DAILY_CALLS"):
        read_settings(_env_file=None, daily_calls=0)


def test_every_number_that_the_analytics_compare_with_is_a_setting_with_the_same_default():
    assert {each.name for each in fields(Analysis)} <= set(Settings.model_fields)
    assert Settings(_env_file=None).analysis == Analysis()


def test_the_command_shows_each_setting_with_its_source_and_no_secret(no_settings_around, tmp_path):
    (tmp_path / ".env").write_text("NIGHTAUDIT_LAKE=file\nNIGHTAUDIT_WORKERS=\nNIGHTAUDIT_CLIENT_SECRET=hush\n")
    no_settings_around.setenv("NIGHTAUDIT_ATTEMPTS", "3")
    written = CliRunner().invoke(app, ["settings", "--format", "json"]).stdout
    shown = {entry["name"]: (entry["value"], entry["source"]) for entry in map(json.loads, written.splitlines())}
    assert shown["NIGHTAUDIT_LAKE"] == ("file", ".env")
    assert shown["NIGHTAUDIT_ATTEMPTS"] == ("3", "environment")
    assert shown["NIGHTAUDIT_CLIENT_SECRET"] == ("(hidden)", ".env")
    assert shown["NIGHTAUDIT_WORKERS"][1] == "default"
    assert shown.keys() == {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    assert "hush" not in written


def test_the_command_shows_each_spec_key_with_the_value_of_the_spec(tmp_path):
    spec = tmp_path / "own.toml"
    spec.write_text(
        "[properties]\nids = [1]\n[stays]\nnights = [1, 3]\n[[stays.horizon]]\nto_days = 5\n[[stays.horizon]]\n"
        'to_days = 30\nevery_days = 5\n[ask]\nmarkets = ["GB"]\nparties = ["2"]\n'
    )
    written = CliRunner().invoke(app, ["spec", "--spec", str(spec), "--format", "json"]).stdout
    entries = map(json.loads, written.splitlines())
    shown = {entry["name"]: (entry["value"], entry["source"]) for entry in entries}
    assert shown["stays.nights"] == ("1, 3", "spec")
    assert shown["stays.horizon.to_days"] == ("5; 30", "spec")
    assert shown["ask.batch"] == ("100", "default")
    assert shown["properties.query"] == ("", "default")
    assert shown.keys() == {key.address for key in spec_keys()}


def test_without_a_spec_of_a_supplier_the_keys_are_still_listed(no_settings_around):
    for name, value in OUTSIDE.items():
        no_settings_around.setenv(f"{PREFIX}{name.upper()}", value)
    assert "No sweep spec is set" in CliRunner().invoke(app, ["spec"]).stdout


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:8786", "tcp://localhost:8786", "tcp://[::1]:8786", " TCP://127.0.0.1:8786/ "]
)
def test_a_cluster_on_this_machine_may_be_spoken_to_in_clear_text(address):
    assert read_settings(cluster=address).spread_over.address.startswith("tcp://")


def test_a_cluster_on_another_machine_needs_tls_unless_a_setting_allows_otherwise(tmp_path):
    with pytest.raises(SettingsError, match="CLUSTER_CLEAR_TEXT=true"):
        read_settings(cluster="tcp://scheduler.example:8786")
    allowed = read_settings(cluster="tcp://scheduler.example:8786", cluster_clear_text=True)
    assert not allowed.spread_over.is_encrypted
    with pytest.raises(SettingsError, match="CLUSTER_CA_FILE must name an existing file"):
        read_settings(cluster="tls://scheduler.example:8786")
    files = {name: tmp_path / f"{name}.pem" for name in ("cluster_ca_file", "cluster_cert_file", "cluster_key_file")}
    for file in files.values():
        file.touch()
    assert read_settings(cluster="tls://scheduler.example:8786", **files).spread_over.is_encrypted


@pytest.mark.parametrize(
    "text",
    ["scheduler:8786", "tcp://scheduler", "http://scheduler:8786", "tcp://:8786", "tcp://a:8786/x", "tcp://u:p@a:8786",
     "tcp://a:99999", "tcp://a:8786?x"],
)  # fmt: skip
def test_what_is_no_schedulers_address_is_refused(text):
    with pytest.raises(SettingsError, match="NIGHTAUDIT_CLUSTER"):
        read_settings(cluster=text, cluster_clear_text=True)
