"""A night whose answers a Dask cluster normalises loses nothing and repeats no request, whatever happens to it."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from dask_machines import client_of, cut_off, while_one_works
from night_machine import SPEC, Machine, assert_same, contents, night

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The lake of a night that this machine normalises by itself."""
    alone = machine(tmp_path_factory.mktemp("night") / "alone")
    alone.run("nightly", **night(1))
    return alone.root


def machine(folder: Path, **given: str) -> Machine:
    made = Machine(folder, None, NIGHTAUDIT_LAKE="lake", **given)
    (folder / "sweep.toml").write_text(SPEC.format(properties="sandbox = 24", days=9))
    return made


def answers(root: Path) -> dict[str, str]:
    """The files of raw answers: an answer that was asked for again would have other times."""
    return {
        place.relative_to(root).as_posix(): hashlib.sha256(place.read_bytes()).hexdigest()
        for place in root.glob("raw/*/*.parquet")
    }


def assert_undisturbed(root: Path, undisturbed: Path) -> None:
    assert answers(root).keys() == answers(undisturbed).keys()
    assert_same(contents(root / "published/nightaudit.duckdb"), contents(undisturbed / "published/nightaudit.duckdb"))


@pytest.mark.parametrize(
    "lose", [pytest.param(subprocess.Popen.kill, id="killed"), pytest.param(cut_off, id="cut off for a while")]
)
def test_a_worker_that_is_lost_in_mid_sweep_costs_its_time(tmp_path, machines, undisturbed, lose):
    one = machine(tmp_path / "one", NIGHTAUDIT_CLUSTER=machines.address)
    with while_one_works(machines, lose) as lost:
        one.run("nightly", **night(1))
    assert len(lost) == 1
    assert_undisturbed(one.root, undisturbed)
    with client_of(machines) as client:
        assert len(client.nthreads()) == (2 if machines.workers[lost[0]].poll() is not None else 3)


def test_without_its_scheduler_a_sweep_stops_and_continues_without_repeating_requests(tmp_path, machines, undisturbed):
    one = machine(tmp_path / "one")
    with while_one_works(machines, lambda _: machines.scheduler.kill()) as met:
        said = one.run("nightly", code=1, NIGHTAUDIT_CLUSTER=machines.address, **night(1))
    assert met
    assert "was lost while it was working" in said
    assert "Then: nightaudit resume" in said
    landed = answers(one.root)
    assert landed
    one.run("nightly", **night(1))
    after = answers(one.root)
    assert {path: after[path] for path in landed} == landed
    assert_undisturbed(one.root, undisturbed)
