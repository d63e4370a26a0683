"""The image and the services around it: what they name exists, and nothing secret is in them."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import prefect.settings
import pytest
import yaml
from prefect_runs import ROOT

import flows
from pipeline.settings import PREFIX, Settings, read_settings

COMPOSE = yaml.safe_load((ROOT / "flows" / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
DOCKERFILE = (ROOT / "flows" / "Dockerfile").read_text()
BIN = Path(sys.executable).parent


def commands() -> list[list[str]]:
    """What services run of ours, line by line where a shell runs it."""
    found = []
    for service in SERVICES.values():
        if service["image"] != "nightaudit":
            continue
        command = service["command"]
        lines = command[2].splitlines() if command[0] == "sh" else [shlex.join(command)]
        found += [shlex.split(line) for line in lines]
    return found


@cache
def printed_by(*words: str) -> str:
    program, *subcommands = words
    called = [BIN / program, *subcommands, "--help"]
    return subprocess.run(
        called, capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "300"}
    ).stdout


@pytest.mark.slow
def test_services_run_commands_and_options_that_exist():
    found = commands()
    assert len(found) > 5
    for program, *rest in found:
        options = [word for word in rest if word.startswith("--")]
        # `prefect --no-prompt deploy …`: options may come before a subcommand.
        words = []
        for word in rest:
            if word.startswith("--") and words:
                break
            if not word.startswith(("--", "tcp:")):
                words.append(word)
        text = printed_by(program, *words) + printed_by(program)
        assert [option for option in options if not re.search(rf"(?<![\w-]){option}(?![\w-])", text)] == []


def test_services_are_given_settings_that_exist_and_can_be_used(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    named = {name: value for service in SERVICES.values() for name, value in service.get("environment", {}).items()}
    ours = {name: value for name, value in named.items() if name.startswith(PREFIX)}
    assert {f"{PREFIX}CLUSTER", f"{PREFIX}LAKE", f"{PREFIX}RATE_STORE"} <= ours.keys()
    assert {name.removeprefix(PREFIX).lower() for name in ours} <= Settings.model_fields.keys()
    for name, value in ours.items():
        monkeypatch.setenv(name, value)
    assert read_settings().spread_over.address == f"tcp://scheduler:{_port_of('scheduler')}"
    theirs = {name for name in named if name.startswith("PREFECT_")} | set(re.findall(r"PREFECT_\w+", DOCKERFILE))
    assert [name for name in theirs if not hasattr(prefect.settings, name)] == []


def test_the_image_sets_what_prefect_reads_before_it_imports_our_flows():
    for name, value in flows.DEFAULTS.items():
        assert f" {name}={value} " in DOCKERFILE


def _port_of(service: str) -> str:
    command = SERVICES[service]["command"]
    return command[command.index("--port") + 1]


def _option(command: list[str], name: str) -> str:
    return next(word.removeprefix(f"{name}=") for word in command if word.startswith(f"{name}="))


def test_a_service_that_is_waited_for_says_whether_it_is_healthy():
    for name, service in SERVICES.items():
        assert "healthcheck" in service or service.get("restart") == "no", name
        for other, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_completed_successfully":
                assert SERVICES[other]["restart"] == "no"
            else:
                assert how["condition"] == "service_started" or "healthcheck" in SERVICES[other]


def test_two_workers_and_the_nights_share_one_store_and_each_has_a_copy_of_its_own():
    sharing = {name for name, service in SERVICES.items() if "../store.env" in service.get("env_file", [])}
    assert sharing == {"store", "worker-1", "worker-2", "nights"}
    for name in sharing - {"store"}:
        environment = SERVICES[name]["environment"]
        assert environment["AWS_ENDPOINT_URL"] == f"http://store:{_option(SERVICES['store']['command'], '-s3.port')}"
        assert environment["NIGHTAUDIT_LAKE"].startswith("s3://")
        # The same path in each, as a cluster needs it, and a folder that they can write to.
        assert f"mkdir {environment['NIGHTAUDIT_LAKE_COPY']} " in DOCKERFILE
    volumes = [volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])]
    assert sorted(volumes) == sorted({*COMPOSE["volumes"], "../specs"})


def test_a_container_that_is_made_again_is_the_same_machine_for_the_lake():
    """A copy of a lake belongs to a machine, which is known by the name of its host."""
    with_copy = [name for name, service in SERVICES.items() if "NIGHTAUDIT_LAKE_COPY" in service.get("environment", {})]
    assert len(with_copy) == 3
    assert {name: SERVICES[name].get("hostname") for name in with_copy} == {name: name for name in with_copy}


@pytest.mark.parametrize(
    ("listed", "is_there"),
    [
        ("  nightaudit\tsize:0\tlogical:0\tchunk:0\n", True),
        ("  nightaudit-old\tsize:0\n  old-nightaudit\tsize:0\n", False),
        ("", False),
    ],
)
def test_the_bucket_is_known_by_its_exact_name(listed, is_there):
    (command,) = SERVICES["bucket"]["command"]
    (look,) = re.findall(r"\| (grep .+) \\", command)
    assert (subprocess.run(["sh", "-c", look], input=listed, text=True).returncode == 0) is is_there


def test_the_server_finds_the_slots_of_running_flows_again_after_a_restart():
    """In memory, they would be taken forever, and every later night of the spec refused."""
    server = SERVICES["prefect"]
    home = server["environment"]["PREFECT_HOME"]
    storage = server["environment"]["PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE"]
    assert importlib.import_module(storage).ConcurrencyLeaseStorage.__init__.__annotations__.keys() == {"storage_path"}
    assert f"prefect:{home}" in server["volumes"]
    assert f"mkdir /copy /lake {home}" in DOCKERFILE


def test_no_secret_is_written_down_and_no_port_is_open_to_the_network():
    assert re.findall(r"\b[A-Z_]*(?:PASSWORD|SECRET|TOKEN|KEY)[A-Z_]*\b", DOCKERFILE) == []
    for name, service in SERVICES.items():
        for setting, value in service.get("environment", {}).items():
            assert not re.search("PASSWORD|SECRET", setting) or setting.endswith("_FILE"), (name, value)
        assert set(service.get("secrets", [])) <= COMPOSE["secrets"].keys()
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    ignored = (ROOT / ".gitignore").read_text().split()
    files = {secret["file"] for secret in COMPOSE["secrets"].values()}
    for service in SERVICES.values():
        given = service.get("env_file", [])
        files |= {given} if isinstance(given, str) else set(given)
    assert {f"/{Path(file).name}" for file in files - {"../.env"}} <= set(ignored)
    assert ".env" in ignored


def test_the_image_holds_only_copied_files_and_runs_as_an_unprivileged_user():
    copied = [
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)
        for source in line.split()[:-1]
    ]
    assert copied
    assert all((ROOT / source).exists() for source in copied)
    let_in = (ROOT / "flows" / "Dockerfile.dockerignore").read_text().splitlines()
    assert "*" in let_in
    assert {line[1:] for line in let_in if line.startswith("!")} == set(copied)
    users = re.findall(r"^USER (\w+)$", DOCKERFILE, re.MULTILINE)
    assert users == re.findall(r"--uid (\d+)", DOCKERFILE)
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert set(bases) == {"python:3.11-slim-bookworm"}
    assert re.findall(r"uv==\S+", DOCKERFILE) == re.findall(r"uv==\S+", (ROOT / "Makefile").read_text())


def test_compose_reads_the_file(tmp_path):
    """Where a client is there; one of before 2022 knows no `name`."""
    known = shutil.which("docker-compose")
    if known is None:
        pytest.skip("there is no docker-compose: apt-get install docker-compose")
    (tmp_path / "flows").mkdir()
    for name in (".env", "database-password", "store.env"):
        (tmp_path / name).touch()
    text = (ROOT / "flows" / "compose.yaml").read_text()
    place = tmp_path / "flows" / "compose.yaml"
    place.write_text(re.sub(r"^name: .*$", "", text, flags=re.MULTILINE))
    done = subprocess.run([known, "-f", str(place), "config", "-q"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
