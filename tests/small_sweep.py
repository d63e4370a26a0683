"""A small sweep of a supplier that answers badly, in the test's own process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from sandbox_settings import settings_asking

from pipeline.lake import Lake
from pipeline.lake.raw import read_manifest
from pipeline.night import night_sweep
from pipeline.night.night import Night
from pipeline.night.supplier import supplier_name
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.spec import SweepSpec, parse_spec
from pipeline.sweep import begin

_SPEC = """
[properties]
ids = [1]
[stays]
nights = [1]
[[stays.horizon]]
to_days = {days}
[ask]
markets = {markets}
parties = ["2"]
"""
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def small_spec(folder: Path, *, days: int, markets: Sequence[str]) -> SweepSpec:
    """A spec of one night on each of the coming `days`, for two adults."""
    return parse_spec(_SPEC.format(days=days, markets=json.dumps([*markets])), folder / "sweep.toml", NOW.date())


def sweep_once(lake: Lake, base_url: str, sandbox: SandboxProcess, spec: SweepSpec, ids: Sequence[int]) -> str:
    """Begin a sweep of the supplier at `base_url`, or resume the one there is; return its id."""
    settings = settings_asking(
        sandbox,
        base_url=base_url,
        requests_per_second=1000,
        workers=1,
        lake=str(lake.root),
    )
    if earlier := lake.sweep_ids():
        manifest = read_manifest(lake, earlier[0])
    else:
        manifest = begin(lake, spec, ids, now=NOW, supplier=supplier_name(settings), is_simulated=False)
    asyncio.run(night_sweep.collect(Night(settings, lake, manifest, clock=lambda: NOW)))
    return manifest.sweep_id


def rows(lake: Lake, table: str, sweep_id: str) -> list[dict[str, Any]]:
    """The rows of a sweep in one of the lake's tables."""
    files = sorted((lake.table_root(table) / sweep_id).glob("*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
