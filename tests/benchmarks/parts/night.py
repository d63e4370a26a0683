"""Nights of one partner, from 0.35 million offers up: what audit, publish and report cost, and the sweep before them.

The partner asks about 30 days ahead, one and two nights, in two markets. Each step is a command from nothing. The night
that counts is the second one: a state is there, and some five percent of the prices have moved. Beside it stand
`dbt snapshot` of the same offers, which keeps the history and nothing else, and a prototype that does the least.

`BENCH_SIZES="0.35"` takes some of the sizes, in million offers; `BENCH_LARGE=1` adds 35. `BENCH_NIGHTS=FOLDER` keeps
the nights that are made, for the next time.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks import dbt_snapshot
from benchmarks.bodies import bodies
from benchmarks.history import load_nights
from benchmarks.measuring import Cost, Result, Row, Size, answer_contender, cost_of_command, in_own_process, ratio_row
from benchmarks.narrow import narrow_night
from benchmarks.parts.sweep import swept
from benchmarks.server import missing, serving
from benchmarks.simulated import World

from pipeline.lake import Lake

PART = "night"
_COMMAND = [sys.executable, "-m", "pipeline.cli"]
_TESTS = Path(__file__).parents[2]
# Of a partner's night, as `question_of_partner` asks.
_OFFERS_A_PROPERTY = 930
_PROPERTIES_A_RANGE = 1250
_STEPS = ("audit", "publish", "report")
# What each step is to cost: CPU microseconds an offer. The sweep is counted without the supplier.
_REACH_US = {"audit and report": 4, "publish": 5, "sweep, audit, publish and report": 15}
_REACH_PROCESS_MB = 700
_REACH_WRITTEN_KB = 0.43
# At which sizes the targets count, in million offers.
_TARGETS_FROM = 3.5
# How many processes work on ranges of a night side by side.
_PROCESSES = "NIGHTAUDIT_WORKERS"


def measure(size: Size, folder: Path) -> Result:
    """Each size on its own, the smallest first."""
    result = Result()
    sizes = [float(each) for each in os.environ.get("BENCH_SIZES", "0.35 3.5").split()]
    if os.environ.get("BENCH_LARGE") == "1":
        sizes.append(35.0)
    else:
        result.skipped.append("a night of 35 million offers (BENCH_LARGE=1 adds it)")
    if size.is_tiny:
        sizes = [0.01]
        unhad = None if dbt_snapshot.is_installed() else "dbt is not installed for this"
    else:
        unhad = dbt_snapshot.install()
    if unhad:
        result.skipped.append(f"dbt snapshot ({unhad})")
    largest: dict[float, dict[str, Cost]] = {}
    for millions in sizes:
        place = folder / f"{millions:g}"
        place.mkdir()
        largest[millions] = _night(result, millions, place, has_dbt=unhad is None)
        shutil.rmtree(place)
    if len(sizes) > 1:
        _growth(result, largest)
    return result


def _night(result: Result, millions: float, folder: Path, *, has_dbt: bool) -> dict[str, Cost]:
    """Measure a night of one size, and return what its steps cost."""
    world = World(max(round(1e6 * millions / _OFFERS_A_PROPERTY), 4), 2, questions="question_of_partner")
    lake, offers = _loaded(world, folder, millions)
    first, second = (world.sweep_id(night) for night in range(2))
    of = f"{millions:g} M offers"
    begun = _run(lake, offers, "audit", first), _run(lake, offers, "publish", first)
    result.rows.append(Row(PART, f"{of}, first night, publish: CPU per offer", begun[1].cpu_us, "us"))
    # What the second night starts from, for the ones that publish it again.
    before = folder / "before"
    _copied(lake, before)
    costs = {"sweep": swept_cost} if (swept_cost := _sweep(offers, folder)) else {}
    costs |= {step: _run(lake, offers, step, *([] if step == "report" else [second])) for step in _STEPS}
    for step, cost in costs.items():
        _add_step(result, of, step, cost)
    _add_sums(result, of, costs, offers, is_target=millions >= _TARGETS_FROM)
    _add_peers(result, of, lake, world, offers, costs["publish"], folder, has_dbt=has_dbt, is_target=millions >= 1)
    if millions >= 1:
        _add_side_by_side(result, of, before, offers, second)
    for step, cost in costs.items():
        result.points.append({"curve": "CPU seconds of a step of the night", "who": step, "x": offers, "y": cost.cpu_s})
        result.points.append(
            {"curve": "Largest process of a step of the night, MB", "who": step, "x": offers, "y": cost.largest_mb}
        )
    return costs


def _loaded(world: World, folder: Path, millions: float) -> tuple[Path, float]:
    """Return a lake with both nights, loaded and not published, and the offers of the second one."""
    kept = os.environ.get("BENCH_NIGHTS")
    lake = folder / "lake"
    made = Path(kept) / f"{millions:g}" if kept else lake
    if not made.exists():
        load_nights(Lake(str(made)), world)
    if made != lake:
        _copied(made, lake)
    import duckdb

    files = str(Lake(str(lake)).table_root("offer") / world.sweep_id(1) / "*.parquet")
    return lake, float(duckdb.execute("SELECT count(*) FROM read_parquet(?)", [files]).fetchall()[0][0])


def _copied(lake: Path, to: Path) -> None:
    """Copy a lake; Parquet files, which nothing changes once they are written, are shared."""

    def copy(source: str, target: str) -> None:
        is_near = Path(source).stat().st_dev == Path(target).parent.stat().st_dev
        if is_near and source.endswith(".parquet"):
            os.link(source, target)
        else:
            shutil.copy2(source, target)

    shutil.copytree(lake, to, copy_function=copy)


def _run(lake: Path, offers: float, *words: str, settings: Mapping[str, str] | None = None) -> Cost:
    """Run one of our commands on the lake, from its start to its end."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NIGHTAUDIT_")}
    environment |= {"NIGHTAUDIT_LAKE": str(lake), "PYTHONPATH": f"{_TESTS}:{_TESTS.parent}", **(settings or {})}
    return cost_of_command([*_COMMAND, *words], environment, offers)


def _sweep(offers: float, folder: Path) -> Cost | None:
    """Sweep a number of offers from a server that is not counted; None if it is not installed."""
    if missing("nginx"):
        return None
    canned = [body for _, _, body in bodies(10, hotels=1)]
    a_body = statistics.mean(body.count(b'"productId"') for body in canned)
    with serving(canned, gzip=True) as base:
        requests = max(round(offers / a_body), 1)
        cost = swept(base, requests, folder / "swept")
    shutil.rmtree(folder / "swept")
    return _of(requests * a_body, cost)


def _of(units: float, *costs: Cost) -> Cost:
    """Return the sum of some costs, for a number of units."""
    return Cost(
        units,
        sum(cost.cpu_s for cost in costs),
        sum(cost.wall_s for cost in costs),
        max(cost.peak_mb for cost in costs),
        max(cost.largest_mb for cost in costs),
        max(cost.largest_started_mb for cost in costs),
        sum(cost.written_mb for cost in costs),
    )


def _add_step(result: Result, of: str, step: str, cost: Cost) -> None:
    reach = _REACH_PROCESS_MB
    note = f"{cost.cpu_s:.1f} CPU s, {cost.wall_s:.1f} s elapsed, {cost.written_mb:,.0f} MB written; one run"
    memory = f"all processes together {cost.peak_mb:,.0f} MB"
    what = f"{of}, {step}: largest process"
    result.rows += [
        Row(PART, f"{of}, {step}: CPU per offer", cost.cpu_us, "us", note=note),
        Row(PART, what, cost.largest_mb, "MB", reach=f"<= {reach}", reached=cost.largest_mb <= reach, note=memory),
    ]


def _add_sums(result: Result, of: str, costs: Mapping[str, Cost], offers: float, *, is_target: bool) -> None:
    for what, reach in _REACH_US.items():
        steps = [step for step in ("sweep", *_STEPS) if step in what]
        if not all(step in costs for step in steps):
            result.skipped.append(f"{of}, {what}: {missing('nginx')}")
            continue
        us = sum(costs[step].cpu_us for step in steps)
        aim = (f"<= {reach}", us <= reach) if is_target else ("", None)
        result.rows.append(Row(PART, f"{of}, {what} together: CPU per offer", us, "us", None, None, *aim))
    kb = sum(cost.written_mb for cost in costs.values()) * 1e3 / offers
    aim = (f"<= {_REACH_WRITTEN_KB:g}", kb <= _REACH_WRITTEN_KB) if is_target else ("", None)
    note = ", ".join(f"{step} {cost.written_mb:,.0f} MB" for step, cost in costs.items())
    result.rows.append(Row(PART, f"{of}: written to the disk, all steps", kb, "kB per offer", None, None, *aim, note))


def _add_peers(
    result: Result,
    of: str,
    lake: Path,
    world: World,
    offers: float,
    ours: Cost,
    folder: Path,
    *,
    has_dbt: bool,
    is_target: bool,
) -> None:
    before, night = (Lake(str(lake)).table_root("offer") / world.sweep_id(number) for number in range(2))
    ranges = max(round(world.properties / _PROPERTIES_A_RANGE), 1)
    given = {"before": str(before), "night": str(night), "ranges": ranges, "folder": str(folder / "narrow")}
    least = in_own_process(PART, "narrow", given)
    note = f"{least.cpu_us:.2f} us per offer, {least.largest_mb:,.0f} MB; keys, history, state, exact pairs, a summary"
    result.rows.append(
        ratio_row(
            PART,
            f"{of}, publish: CPU, as a multiple of a minimal prototype's",
            [ours.cpu_s / least.cpu_s],
            None,
            note=note,
        )
    )
    if has_dbt:
        snapshots = dbt_snapshot.Snapshots(folder / "dbt")
        try:
            snapshots.take(before, offers)
            peer = snapshots.take(night, offers)
        except RuntimeError as error:
            # What was measured of ours is worth keeping.
            result.skipped.append(f"{of}, dbt snapshot: {error}")
            return
        note = (
            f"dbt, including start-up: {peer.cpu_s:.1f} CPU s, {peer.largest_mb:,.0f} MB, {peer.written_mb:,.0f} MB "
            "written"
        )
        what = f"{of}, publish: CPU, as a multiple of dbt snapshot's (history alone)"
        reach = 0.75 if is_target else None
        result.rows.append(ratio_row(PART, what, [ours.cpu_s / peer.cpu_s], reach, is_least=False, note=note))


def _add_side_by_side(result: Result, of: str, before: Path, offers: float, sweep_id: str) -> None:
    """Publish the night again with one process and with two."""
    costs = []
    for processes in ("1", "2"):
        lake = before.with_name(f"processes-{processes}")
        _copied(before, lake)
        _run(lake, offers, "audit", sweep_id)
        costs.append(_run(lake, offers, "publish", sweep_id, settings={_PROCESSES: processes}))
        shutil.rmtree(lake)
    one, two = costs
    note = f"{one.wall_s:.1f} and {two.wall_s:.1f} s; {one.cpu_s:.1f} and {two.cpu_s:.1f} CPU s"
    what = f"{of}, publish: two processes, elapsed time as a multiple of one"
    result.rows.append(ratio_row(PART, what, [two.wall_s / one.wall_s], 0.6, is_least=False, note=note))


def _growth(result: Result, costs: Mapping[float, Mapping[str, Cost]]) -> None:
    """Compare the largest night with the one before it, per offer and per process."""
    small, large = sorted(costs)[-2:]
    for step in costs[large]:
        few, many = costs[small][step], costs[large][step]
        note = f"CPU us per offer: {few.cpu_us:.3g} and {many.cpu_us:.3g}"
        sizes = f"{large:g} M compared with {small:g} M"
        cpu = [many.cpu_us / few.cpu_us]
        result.rows.append(ratio_row(PART, f"{step}: CPU per offer, {sizes}", cpu, 1.1, is_least=False, note=note))
        memory, note = [many.largest_mb / few.largest_mb], f"MB: {few.largest_mb:.0f} and {many.largest_mb:.0f}"
        reach = 1.1 if small >= _TARGETS_FROM else None
        result.rows.append(
            ratio_row(PART, f"{step}: largest process, {sizes}", memory, reach, is_least=False, note=note)
        )


def narrow(before: str, night: str, ranges: int, folder: str):
    """The prototype, in a separate process."""
    return narrow_night(Path(before), Path(night), ranges, Path(folder))


CONTENDERS = {"narrow": narrow}

if __name__ == "__main__":
    answer_contender(CONTENDERS)
