"""A cluster, or one worker of it, that takes connections and never answers is an error that names it, not a wait."""

from __future__ import annotations

import json
import signal
import socket
import time

import pytest
from dask_machines import Machines, client_of

from pipeline.domain.errors import ClusterAway
from pipeline.domain.servers import Cluster
from pipeline.process import cluster_client
from pipeline.process.cluster_pool import open_pool

Client = pytest.importorskip("distributed", reason="there is no distributed: it is of the extra `cluster`").Client
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def machines(tmp_path):
    (tmp_path / "machines").mkdir()
    made = Machines(tmp_path / "machines")
    try:
        for _ in range(2):
            made.start_worker()
        made.wait_for_workers()
        yield made
    finally:
        made.end()


@pytest.fixture
def lake_root(tmp_path):
    (tmp_path / "lake").mkdir()
    return tmp_path / "lake"


def test_a_port_that_takes_connections_and_never_answers_is_no_cluster(lake_root, monkeypatch):
    monkeypatch.setattr(cluster_client, "_STEPS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(
            ClusterAway, match=f"{address} cannot be reached: something there .* does not answer"
        ) as told:
            open_pool(Cluster(address), lake_root, lambda: None)
    assert "NIGHTAUDIT_CLUSTER" in told.value.hint
    assert list(lake_root.iterdir()) == []


@pytest.mark.cluster
def test_a_frozen_scheduler_is_named(lake_root, machines, monkeypatch):
    monkeypatch.setattr(cluster_client, "_STEPS", 0.2)
    machines.scheduler.send_signal(signal.SIGSTOP)
    with pytest.raises(ClusterAway, match=f"{machines.address} cannot be reached: something there .* does not answer"):
        open_pool(Cluster(machines.address), lake_root, lambda: None)


@pytest.mark.cluster
def test_a_scheduler_that_freezes_once_it_is_connected_is_named(lake_root, machines, monkeypatch):
    monkeypatch.setattr(cluster_client, "_ANSWER_SECONDS", 2.0)

    def connected(cluster):
        client = cluster_client.connected(cluster)
        machines.scheduler.send_signal(signal.SIGSTOP)
        return client

    monkeypatch.setattr("pipeline.process.cluster_pool.connected", connected)
    with pytest.raises(ClusterAway, match=f"The cluster {machines.address} does not answer"):
        open_pool(Cluster(machines.address), lake_root, lambda: None)
    assert list((lake_root / ".spill").iterdir()) == []


@pytest.mark.cluster
def test_tasks_of_a_scheduler_that_freezes_while_they_run_are_lost(lake_root, machines, monkeypatch):
    """Its connections stay open, so nothing but its silence shows it."""
    monkeypatch.setattr(cluster_client, "_ASKED_EVERY_SECONDS", 0.5)
    monkeypatch.setattr(cluster_client, "_SILENT_SECONDS", 2.0)
    monkeypatch.setattr(cluster_client, "_CONNECT_SECONDS", 2.0)
    with open_pool(Cluster(machines.address), lake_root, lambda: None) as pool:
        assert pool.submit(abs, -1).result(60) == 1
        task = pool.submit(time.sleep, 3)
        # A scheduler that answers again in time is not given up.
        machines.scheduler.send_signal(signal.SIGSTOP)
        time.sleep(1)
        machines.scheduler.send_signal(signal.SIGCONT)
        assert task.result(60) is None
        task = pool.submit(time.sleep, 60)
        machines.scheduler.send_signal(signal.SIGSTOP)
        with pytest.raises(ClusterAway, match="was lost while it was working"):
            task.result(60)


@pytest.mark.cluster
def test_a_task_whose_scheduler_dies_as_its_result_is_fetched_is_lost(lake_root, machines, monkeypatch):
    fetch = Client._gather_remote

    async def dying(self, *options):
        machines.scheduler.kill()
        machines.scheduler.wait()
        return await fetch(self, *options)

    monkeypatch.setattr(Client, "_gather_remote", dying)
    with open_pool(Cluster(machines.address), lake_root, lambda: None) as pool:
        with pytest.raises(ClusterAway, match="was lost while it was working"):
            pool.submit(abs, -1).result(30)
        # Nor does one hang that is submitted while its library tries to connect again, or has given up.
        for seconds in (0, 15):
            time.sleep(seconds)
            with pytest.raises(ClusterAway, match="was lost while it was working"):
                pool.submit(abs, -1).result(30)


@pytest.mark.cluster
def test_a_frozen_worker_is_named_and_the_others_are_not(lake_root, machines, monkeypatch):
    with client_of(machines) as client:
        by_name = {w["name"]: address for address, w in client.scheduler_info(n_workers=-1)["workers"].items()}
    machines.workers["worker-0"].send_signal(signal.SIGSTOP)
    monkeypatch.setattr(cluster_client, "_ANSWER_SECONDS", 5.0)
    with pytest.raises(ClusterAway) as told:
        open_pool(Cluster(machines.address), lake_root, lambda: None)
    assert f"did not answer within 5 seconds: {by_name['worker-0']}." in told.value.message
    assert by_name["worker-1"] not in told.value.message
    assert list((lake_root / ".spill").iterdir()) == []
    machines.workers["worker-0"].send_signal(signal.SIGCONT)
    monkeypatch.undo()
    with open_pool(Cluster(machines.address), lake_root, lambda: None) as pool:
        assert pool.size == 2


@pytest.mark.cluster
def test_a_plan_names_the_workers_of_its_cluster_and_soon_says_that_a_frozen_one_does_not_answer(
    machines, tmp_path, monkeypatch, nightaudit
):
    given = {"NIGHTAUDIT_CLUSTER": machines.address, "NIGHTAUDIT_LAKE": "lake"}
    said = " ".join(nightaudit(tmp_path, "plan", **given).stdout.split())
    assert "workers: 2, tasks at once: 2. The time given for audit and publish is that of one machine." in said
    monkeypatch.setattr(cluster_client, "_LOOK_SECONDS", 0.2)
    machines.scheduler.send_signal(signal.SIGSTOP)
    planned = json.loads(nightaudit(tmp_path, "plan", "--format", "json", **given).stdout)
    assert "does not answer" in planned["cluster_refusal"]
    assert planned["workers"] is planned["tasks_at_once"] is None
    assert planned["publish_seconds"] > 0
