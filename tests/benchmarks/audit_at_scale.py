# ruff: noqa: S608 - our own names and places
"""What the audit of a large sweep costs: `python tests/benchmarks/audit_at_scale.py LAKE FOLDER [OFFERS]`.

LAKE is a lake with a published sweep; FOLDER gets a lake whose two sweeps hold copies of it, with searches and
check-ins shifted, until there are OFFERS (10 million). The audit of the second, against the first, runs in a process
of its own. Prints seconds, the peak of its memory, and its share of the time that the sweep itself took per offer.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import duckdb
import msgspec

from pipeline.delta import commit_files
from pipeline.domain.tables import TABLES
from pipeline.gate import audit_sweep
from pipeline.lake import Lake
from pipeline.publish.ledger import LedgerEntry, enter
from pipeline.raw import Ending, read_manifest, write_ending, write_manifest
from pipeline.settings import Settings
from pipeline.warehouse import select_files

SEGMENT_TABLES = ("search", "offer", "penalty", "promotion", "reject", "drift", "cell")
COPIES_PER_FILE = 8


def multiply(source: Lake, target: Lake, offers: int) -> str:
    """Write the two sweeps and return the id of the second."""
    sweep = source.sweep_ids()[-1]
    manifest = read_manifest(source, sweep)
    searches = max(partition.stop for partition in manifest.partitions)
    with duckdb.connect(":memory:") as session:
        session.execute("SET TimeZone = 'UTC'")
        session.execute("SET memory_limit = '1GB'")
        held = {name: sorted((source.table_root(name) / sweep).glob("*.parquet")) for name in SEGMENT_TABLES}
        stored = session.execute(f"SELECT count(*) FROM ({select_files('offer', held['offer'])})").fetchall()[0][0]
        copies = -(-offers // stored)
        for name in SEGMENT_TABLES:
            columns = [column.name for column in TABLES[name].columns]
            shifted = [f"search_id + copy * {searches * 256} AS search_id"] if "search_id" in columns else []
            shifted += ["check_in + (20 * copy)::INTEGER AS check_in"] if "check_in" in columns else []
            shifted += ["(segment + copy * 1000)::INTEGER AS segment"] if "segment" in columns else []
            for first in range(0, copies, COPIES_PER_FILE):
                last = min(first + COPIES_PER_FILE, copies)
                place = target.local(target.table_file(name, sweep, f"multi-XX-{first:05d}"))
                place.parent.mkdir(parents=True, exist_ok=True)
                session.execute(
                    f"COPY (SELECT rows.* REPLACE ({', '.join(shifted)}) "
                    f"FROM ({select_files(name, held[name])}) AS rows, "
                    f"(SELECT unnest(range({first}, {last})) AS copy) "
                    f"ORDER BY copy) TO '{place}' (FORMAT parquet, COMPRESSION zstd)"
                )
        (row,) = session.execute(
            f"SELECT * FROM read_parquet('{source.local(source.table_file('sweep', sweep, 'sweep'))}')"
        ).fetchall()
        counted = ("planned", "offered", "no_offer", "absent", "rejected", "failed", "not_swept", "offers")
        place = target.local(target.table_file("sweep", sweep, "sweep"))
        place.parent.mkdir(parents=True, exist_ok=True)
        session.execute(
            f"COPY (SELECT * REPLACE ({', '.join(f'{name} * {copies} AS {name}' for name in counted)}) FROM "
            f"read_parquet('{source.local(source.table_file('sweep', sweep, 'sweep'))}')) TO '{place}' (FORMAT parquet)"
        )
    wide = replace(
        manifest,
        cells=manifest.cells * copies,
        partitions=tuple(
            replace(part, start=0, stop=copies * (part.stop - part.start)) for part in manifest.partitions
        ),
    )
    before = replace(wide, sweep_id="0" + wide.sweep_id[1:], started_at=wide.started_at - timedelta(days=1))
    for one in (before, wide):
        write_manifest(target, one)
        write_ending(target, one.sweep_id, Ending(one.started_at, is_complete=True))
    for name in SEGMENT_TABLES:
        folder = target.table_root(name) / before.sweep_id
        folder.mkdir(exist_ok=True)
        for file in (target.table_root(name) / sweep).glob("*.parquet"):
            (folder / file.name).hardlink_to(file)
    enter(target, LedgerEntry(before.sweep_id, before.started_at, before.started_at, "passed"))
    commit_files(target, TABLES["sweep"], [target.table_file("sweep", sweep, "sweep")], sweep)
    took = (row[3] - row[2]).total_seconds()
    target.put("benchmark.json", msgspec.json.encode({"sweep_seconds": took * copies, "offers": stored * copies}))
    return sweep


def measure(lake: Lake) -> None:
    """Audit the larger sweep in this process, and print what it took."""
    said = lake.get_json("benchmark.json")
    sweep = lake.sweep_ids()[-1]
    began, cpu = time.perf_counter(), time.process_time()
    found = audit_sweep(Settings(_env_file=None), lake, sweep, read_manifest(lake, sweep).started_at)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(  # noqa: T201 - what it is for
        f"{said['offers']:,} offers: audited in {seconds:.1f} s ({time.process_time() - cpu:.1f} CPU s), "
        f"peak {peak:,.0f} MB, {seconds / float(str(said['sweep_seconds'])):.1%} of the sweep's "
        f"{float(str(said['sweep_seconds'])):.0f} s; passed: {found.is_passed}; {len(found.findings)} findings"
    )


if __name__ == "__main__":
    if sys.argv[1] == "measure":
        measure(Lake(sys.argv[2]))
    else:
        made = Lake(sys.argv[2])
        multiply(Lake(sys.argv[1]), made, int(sys.argv[3]) if len(sys.argv) > 3 else 10_000_000)
        subprocess.run([sys.executable, __file__, "measure", str(Path(sys.argv[2]))], check=True)
