"""Another engine reads the Delta tables in place and computes the same as our SQL: Daft, if it is installed."""

from __future__ import annotations

import asyncio
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from s3_server import KEY_ID, SECRET, s3_server

from pipeline.domain.errors import CallsUsedUp
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.night import night_sweep
from pipeline.night.night import Night
from pipeline.publish import publish
from pipeline.settings import Settings
from pipeline.sweep import close, normalisers

daft = pytest.importorskip("daft", reason="there is no daft: make test-daft installs it")

NOW = datetime(2030, 5, 1, 2, tzinfo=UTC)
SPEC = """
[properties]
sandbox = 30
[stays]
nights = [1]
[[stays.horizon]]
to_days = 3
every_days = 1
[ask]
markets = ["DE", "GB"]
parties = ["2"]
operations = ["multi", "single"]
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """Two nights, of which the second was closed before everything was requested."""
    home = tmp_path_factory.mktemp("daft")
    (home / "sweep.toml").write_text(SPEC)
    given = {"lake": str(home / "lake"), "spec": home / "sweep.toml", "sandbox_properties": 30, "_env_file": None}
    lake = Lake(str(home / "lake"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normalisers, "ProcessPoolExecutor", lambda workers, *_, **__: ThreadPoolExecutor(workers))
        for number, cap in enumerate((None, 70)):
            at = NOW + timedelta(days=number)
            settings = Settings(**given, daily_calls=cap)
            manifest = night_sweep.start(settings, lake, at)
            night = Night(settings, lake, manifest, clock=lambda at=at: at)
            try:
                asyncio.run(night_sweep.collect(night))
            except CallsUsedUp:
                close(lake, manifest, at)
                asyncio.run(night_sweep.collect(night))
            publish(lake, manifest.sweep_id, at)
    return lake


@pytest.fixture(params=["folder", "bucket"])
def read(lake, request, monkeypatch, tmp_path):
    """Read a table of the lake in its folder, or of the same lake on S3 in the bucket."""
    if request.param == "folder":
        yield lambda name: daft.read_deltalake(str(lake.root / lake.tables_folder / name))
        return
    monkeypatch.setenv("NIGHTAUDIT_LAKE_COPY", str(tmp_path))
    with s3_server() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        on_s3 = Lake("s3://bucket/daft")
        with on_s3.writing("a test"):
            for place in (lake.root / lake.tables_folder).rglob("*"):
                if place.is_file() and not place.name.startswith("."):
                    on_s3.put_new(place.relative_to(lake.root).as_posix(), place.read_bytes())
        shutil.rmtree(tmp_path)
        keys = {"key_id": KEY_ID, "access_key": SECRET, "region_name": "us-east-1"}
        config = daft.io.IOConfig(s3=daft.io.S3Config(endpoint_url=server.address, use_ssl=False, **keys))
        yield lambda name: daft.read_deltalake(f"s3://bucket/daft/tables/{name}", io_config=config)


def test_daft_gives_the_coverage_of_each_night_from_the_delta_tables(lake, read):
    cells, sweeps = read("cell"), read("sweep")
    status = daft.col("status")

    def number_of(*statuses):
        return status.is_in(list(statuses)).cast(daft.DataType.int64()).sum()

    names = ["sweep_id", "snapshot_date", "operation", "market"]
    counts = {
        "planned": status.count(),
        "swept": number_of("offered", "no_offer", "absent", "rejected", "failed"),
        "answered": number_of("offered", "no_offer", "absent"),
        "rejected": number_of("rejected"),
        "failed": number_of("failed"),
        "not_swept": number_of("not_swept"),
    }
    counted = (
        cells.join(sweeps.select("sweep_id", "snapshot_date"), on="sweep_id")
        .groupby(*names)
        .agg(*(made.alias(name) for name, made in counts.items()))
        .with_column("swept_share", daft.col("swept") / daft.col("planned"))
        .with_column("answered_share", daft.col("answered") / daft.col("planned"))
    )
    found = sorted(
        tuple(row[name] for name in (*names, *counts, "swept_share", "answered_share")) for row in counted.to_pylist()
    )
    with query_published(lake.published_file, "FROM report.coverage ORDER BY sweep_id, operation, market") as answer:
        expected = [tuple(row) for row in answer.fetchall()]
    assert any(row[9] for row in expected)
    assert sorted(found) == sorted(expected)
