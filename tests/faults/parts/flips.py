"""One bit of a file flipped, of each kind that a lake has: `verify --deep` finds it, and nothing else is changed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from faults.lab import Lab
from faults.parts import Counted, Try
from faults.tally import Tally

_KINDS = {
    "raw answers": "raw/*/*.parquet",
    "manifest": "raw/*/sweep.json",
    "table": "tables/*/*/*.parquet",
    "log of a table": "tables/*/_delta_log/*.json",
    "published file": "published/*.duckdb",
    "ledger": "published/ledger/*.json",
    "page": "reports/*/*.html",
}
_OFTEN = 3


def tries(_: int, chance: random.Random, __: Counted) -> Iterator[Try]:
    """Yield each kind, a few times."""
    for kind in _KINDS:
        for _again in range(_OFTEN):
            yield _flip(kind, chance.random(), chance.random())


def _flip(kind: str, which: float, where: float) -> Try:
    def run(lab: Lab) -> Tally:
        tally = Tally("a bit flipped", tries=1)
        lab.back_to("lake")
        files = sorted(file for file in lab.lake.glob(_KINDS[kind]) if file.stat().st_size)
        file = files[int(which * len(files))]
        whole = file.read_bytes()
        bit = int(where * 8 * len(whole))
        spoilt = bytearray(whole)
        spoilt[bit // 8] ^= 1 << bit % 8
        file.write_bytes(spoilt)
        (ended,) = lab.run("verify", "--deep")
        tally.peak_mb = ended.peak_mb
        tally.happened["found" if ended.code else "not found"] += 1
        if not ended.code:
            tally.broken.append(f"{tally.fault}: bit {bit} of {file.relative_to(lab.lake)} is not found")
        file.write_bytes(whole)
        tally.compare(lab, "lake", f"{kind}, put back")
        return tally

    return run
