"""Flags, asked about again before anybody cries: only the cells that they rest on, within a cap.

A run is written down before its first search, and each answer lands in the raw zone as soon as it has come. What became
of the flags follows from both alone, so a run that was killed is settled by the next one: what had landed is judged,
and the rest is not confirmable.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import chain

import duckdb
import msgspec
import pyarrow as pa
import xxhash

from pipeline.domain.analysis import Analysis
from pipeline.domain.errors import InputError, LakeError, NightauditError
from pipeline.domain.search import MAX_PROPERTIES_PER_SEARCH, Operation, ProductType, Search
from pipeline.domain.stay import Party, Stay
from pipeline.domain.tables import CONFIRMATION
from pipeline.inputs.branded import unbranded_ids
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.lake.delta import commit_rows, is_committed
from pipeline.lake.raw import encode_shard, raw_address, read_manifest
from pipeline.night.order import refuse_earlier
from pipeline.night.steps import as_sent
from pipeline.night.supplier import allowance_of, open_client
from pipeline.publish import published_sweeps
from pipeline.publish.refresh import refresh
from pipeline.replay.evidence import Evidence, evidence_at
from pipeline.replay.explain import (
    Answers,
    Row,
    analysis_of,
    answers_behind,
    flag_rows,
    nights_of,
    normalised,
    sweep_table,
)
from pipeline.replay.republish import ReplayedNight, findings, replayed
from pipeline.settings import Clock, Settings
from pipeline.supplier.requests import request_for
from pipeline.sweep.collect import Ask, record_of

logger = logging.getLogger(__name__)

_ANSWERED = {"offered", "no_offer", "absent"}
_STOPPED = "its search was not sent, or its answer did not land: the run was stopped"
_ASKED = ("operation", "market", "product_type", "check_in", "nights", "party", "currency_asked")


_Kind = tuple[str, str, str, date, int, str, str | None]
_Cell = tuple[_Kind, int]


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """One search of a run: cells that differ only in the property. `kind` holds the values of `_ASKED`."""

    kind: _Kind
    property_ids: tuple[int, ...]

    @property
    def operation(self) -> str:
        """The supplier's operation."""
        return self.kind[0]

    @property
    def market(self) -> str:
        """The point of sale."""
        return self.kind[1]

    def search(self, number: int) -> Search:
        """Return it as a planned search."""
        operation, market, product_type, check_in, nights, party, currency = self.kind
        return Search(
            number,
            Operation(operation),
            market,
            ProductType(product_type),
            Stay.of(check_in, nights),
            Party.parse(party),
            currency,
            self.property_ids,
        )


@dataclass(frozen=True, slots=True)
class ConfirmRun:
    """What a run asks. `cells` gives of each flag the searches that it needs, by number, with the property in it.

    `refused` are flags that nothing can be asked about, with the reason.
    """

    run_id: str
    begun_at: datetime
    is_simulated: bool
    supplier: str
    sweep_id: str
    searches: tuple[AskedAgain, ...]
    cells: dict[str, tuple[tuple[int, int], ...]]
    refused: dict[str, str]
    analysis: dict[str, Analysis]
    """By flag: what it is compared with."""


@dataclass(frozen=True, slots=True)
class ConfirmSummary:
    """What a run came to: planned = confirmed + gone + not_confirmable. `left` flags did not fit under the cap."""

    run_id: str
    is_simulated: bool
    searches: int
    left: int
    rows: tuple[Row, ...]

    @property
    def outcomes(self) -> dict[str, int]:
        """How many flags came to what."""
        counted = Counter(row["outcome"] for row in self.rows)
        return {outcome: counted[outcome] for outcome in ("confirmed", "gone", "not_confirmable")}


def choose_flags(lake: Lake, flag_ids: Sequence[str], rules: Sequence[str], limit: int) -> list[Row]:
    """Return the open flags that are named, or the `limit` largest ones of some rules; of all rules if none is named.

    Raises InputError for a flag that is unknown or stands no more, and where there is none at all.
    """
    if flag_ids:
        flags = flag_rows(lake, list(dict.fromkeys(flag_ids)))
        for flag in flags:
            if flag["resolved_at"] is not None:
                raise InputError(
                    f"The flag {flag['flag_id']} stands no more: {flag['ended_by']}, {flag['resolved_at']}.",
                    kept="Nothing was asked.",
                )
        return flags
    query = (
        "SELECT flag_id FROM report.flag WHERE len($rules::VARCHAR[]) = 0 OR list_contains($rules::VARCHAR[], rule) "
        "ORDER BY size_pct DESC NULLS LAST, flag_id LIMIT $limit"
    )
    found = query_published(lake.published_file, query, {"rules": list(rules), "limit": limit}).fetchall()
    if not found:
        raise InputError(
            f"No flag stands{' of ' + ', '.join(rules) if rules else ''}.",
            kept="Nothing was asked.",
            hint='nightaudit query "SELECT rule, count(*) FROM report.flag GROUP BY ALL"',
        )
    return flag_rows(lake, [flag_id for (flag_id,) in found])


async def confirm(settings: Settings, lake: Lake, flags: Sequence[Row], *, now: Clock | None = None) -> ConfirmSummary:
    """Ask about the cells of some flags again and say of each what came of it. The caller holds the lake's writer lock.

    Raises what the supplier's client raises; by then what has landed is judged and stored.
    """
    now = now or settings.clock
    refuse_earlier(lake, now())
    settle_left_over(lake, settings.max_body_bytes)
    manifest = read_manifest(lake, published_sweeps(lake)[-1].sweep_id)
    begun_at = now()
    today = manifest.snapshot_date if manifest.is_simulated else begun_at.date()
    run, left = _planned(lake, flags, manifest.sweep_id, begun_at, today, settings.confirm_cap)
    allowance = allowance_of(settings, lake, now)
    unbranded = unbranded_ids(lake)

    def request_of(search: Search) -> bytes:
        sent = as_sent(search, unbranded)
        return request_for(sent, today=today, send_rate_type=settings.send_rate_type).to_wire()

    async with open_client(settings, lake, manifest, now=now, allowance=allowance) as client:
        lake.put_new(lake.confirmation_path(run.run_id), msgspec.json.format(msgspec.json.encode(run)))
        rows: list[Row] = []
        try:
            await _ask_all(lake, run, client.ask, request_of, settings.in_flight)
        except NightauditError as error:
            rows = settle(lake, run, settings.max_body_bytes, f"it was not asked: {error.message}")
            raise
        finally:
            rows = rows or settle(lake, run, settings.max_body_bytes)
            refresh(lake)
    return ConfirmSummary(run.run_id, run.is_simulated, len(run.searches), left, tuple(rows))


def confirmer(settings: Settings, lake: Lake, now: Clock | None = None) -> Callable[[Sequence[str]], set[str]]:
    """Return what asks about flags again and returns those found again. The caller holds the lake's writer lock.

    It asks about `confirm_cap` flags at most, with as many searches at most; the rest are not among those returned, nor
    are those without an answer. Where the supplier cannot be asked at all there are none, and a warning says why.
    """

    def found_again(flag_ids: Sequence[str]) -> set[str]:
        try:
            flags = choose_flags(lake, flag_ids[: settings.confirm_cap], (), settings.confirm_cap)
            summary = asyncio.run(confirm(settings, lake, flags, now=now))
        except NightauditError as error:
            logger.warning(
                "%d flags could not be asked about again, and are told of once they are: %s",
                len(flag_ids),
                error.message,
            )
            return set()
        return {row["flag_id"] for row in summary.rows if row["outcome"] == "confirmed"}

    return found_again


def _planned(
    lake: Lake, flags: Sequence[Row], sweep_id: str, begun_at: datetime, today: date, cap: int
) -> tuple[ConfirmRun, int]:
    """Return the run that asks about the first flags, as many as `cap` searches allow, and how many are left."""
    manifest = read_manifest(lake, sweep_id)
    analyses = {entry.sweep_id: entry.analysis for entry in published_sweeps(lake)}
    wanted: dict[str, list[_Cell]] = {}
    refused: dict[str, str] = {}
    analysis: dict[str, Analysis] = {}
    for flag in flags:
        flag_id = flag["flag_id"]
        try:
            answers = answers_behind(lake, [flag])
        except LakeError as error:
            refused[flag_id] = f"the answers that it rests on cannot be read: {error.message}"
            continue
        cells = _cells_of(flag, answers)
        if any(kind[3] <= today for kind, _ in cells):
            refused[flag_id] = "a stay that it is about has begun"
            continue
        if len(_batched([*chain(*wanted.values()), *cells])) > cap:
            break
        wanted[flag_id] = cells
        analysis[flag_id] = analysis_of(analyses[flag["last_flagged_sweep_id"]], flag, answers)
    searches = _batched(chain(*wanted.values()))
    numbers = {(each.kind, own): number for number, each in enumerate(searches) for own in each.property_ids}
    told = f"{begun_at.isoformat()} {sorted(wanted)} {sorted(refused)}"
    run = ConfirmRun(
        f"confirm-{begun_at:%Y%m%dT%H%M%S%fZ}-{xxhash.xxh3_64_hexdigest(told.encode())[:6]}",
        begun_at,
        manifest.is_simulated,
        manifest.supplier,
        sweep_id,
        tuple(searches),
        {flag_id: tuple((numbers[cell], cell[1]) for cell in cells) for flag_id, cells in wanted.items()},
        refused,
        analysis,
    )
    return run, len(flags) - len(wanted) - len(refused)


def _cells_of(flag: Row, answers: Answers) -> list[_Cell]:
    """Return the cells that a flag rests on: what they were asked with, and the property."""
    found: dict[_Cell, None] = {}
    for item in flag["evidence"]:
        search = answers[item["sweep_id"], item["search_id"]][0]
        kind: _Kind = tuple(search[name] for name in _ASKED)
        found[kind, item["property_id"]] = None
    return list(found)


def _batched(cells: Iterable[_Cell]) -> list[AskedAgain]:
    """Return the fewest searches that ask about all of the cells."""
    alike: dict[_Kind, list[int]] = defaultdict(list)
    for kind, property_id in dict.fromkeys(cells):
        alike[kind].append(property_id)
    searches = []
    for kind, ids in alike.items():
        most = MAX_PROPERTIES_PER_SEARCH if kind[0] == Operation.MULTI else 1
        parts = (tuple(ids[start : start + most]) for start in range(0, len(ids), most))
        searches += [AskedAgain(kind, part) for part in parts]
    return searches


async def _ask_all(
    lake: Lake, run: ConfirmRun, ask: Ask, request_of: Callable[[Search], bytes], in_flight: int
) -> None:
    waiting = asyncio.Semaphore(in_flight)

    async def one(number: int, asked: AskedAgain) -> None:
        async with waiting:
            search = asked.search(number)
            request = request_of(search)
            answer = await ask(search.operation, request)
            record = record_of(search, request, answer, is_split=False)
            await asyncio.to_thread(lake.put_new, _shard(run, number), encode_shard([record]))

    try:
        async with asyncio.TaskGroup() as group:
            for number, asked in enumerate(run.searches):
                group.create_task(one(number, asked))
    except BaseExceptionGroup as failures:
        # One cause often fails several searches at once; it is told once.
        own, others = failures.split(NightauditError)
        raise (own if others is None and own is not None else failures).exceptions[0] from None


def _shard_name(run: ConfirmRun, number: int) -> str:
    return f"{run.searches[number].operation}-{run.searches[number].market}-{number:06d}"


def _shard(run: ConfirmRun, number: int) -> str:
    return Lake.shard_path(run.run_id, _shard_name(run, number))


def settle_left_over(lake: Lake, max_body_bytes: int) -> None:
    """Judge and store what earlier runs have left, because they were killed. The caller holds the writer lock."""
    for name in sorted(lake.names("raw")):
        if lake.exists(lake.confirmation_path(name)) and not is_committed(lake, CONFIRMATION, name):
            run = msgspec.json.decode(lake.get(lake.confirmation_path(name)), type=ConfirmRun)
            settle(lake, run, max_body_bytes)


def settle(lake: Lake, run: ConfirmRun, max_body_bytes: int, stopped: str = _STOPPED) -> list[Row]:
    """Say of each flag of a run what came of it, by the answers that have landed, and store it once.

    `stopped` is why those have not landed that are missing.
    """
    answers = {
        number: evidence_at(lake, raw_address(run.run_id, _shard_name(run, number), 0))
        for number in range(len(run.searches))
        if lake.exists(_shard(run, number))
    }
    same = {"run_id": run.run_id, "run_at": run.begun_at, "is_simulated": run.is_simulated}
    rows = [
        same | {"flag_id": flag_id, "outcome": "not_confirmable", "reason": reason}
        for flag_id, reason in run.refused.items()
    ]
    statuses = _statuses(run, answers, max_body_bytes)
    confirmable: dict[str, Row] = {}
    for flag_id, cells in run.cells.items():
        held = [answers[number] for number, _ in cells if number in answers]
        seen = {
            "flag_id": flag_id,
            "searched_at": max((each.record.started_at for each in held), default=None),
            "raw_address": " ".join(dict.fromkeys(each.address for each in held)) or None,
        }
        reason = _reason(run, cells, answers, statuses, stopped)
        if reason is not None:
            rows.append(same | seen | {"outcome": "not_confirmable", "reason": reason})
            continue
        confirmable[flag_id] = seen
    judged: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for flag in flag_rows(lake, list(confirmable)):
        flag_id = flag["flag_id"]
        group = (flag["relation"], flag["last_flagged_sweep_id"], repr(run.analysis[flag_id]))
        judged[group].append(flag | {"seen": confirmable[flag_id]})
    for flags in judged.values():
        found = _found_again(lake, run, flags, answers, max_body_bytes)
        for flag in flags:
            now = found.get(flag["flag_id"])
            said = {"size_pct": now["size_pct"], "finding": now["finding"]} if now else {}
            rows.append(same | flag["seen"] | {"outcome": "confirmed" if now else "gone"} | said)
    table = pa.Table.from_pylist(rows, schema=CONFIRMATION.schema)
    commit_rows(lake, CONFIRMATION, table, run.run_id, "confirmations", run.run_id)
    return rows


def _statuses(run: ConfirmRun, answers: Mapping[int, Evidence], max_body_bytes: int) -> dict[tuple[int, int], Row]:
    """Return by search and property what its cell came to."""
    found = {}
    for number, answer in answers.items():
        asked = run.searches[number]
        rows = normalised(run.run_id, {(asked.operation, asked.market): [answer]}, max_body_bytes)
        for cell in rows["cell"][0].to_pylist():
            found[number, cell["property_id"]] = cell | {"failure": answer.record.failure}
    return found


def _reason(
    run: ConfirmRun,
    cells: Iterable[tuple[int, int]],
    answers: Mapping[int, Evidence],
    statuses: Mapping[tuple[int, int], Row],
    stopped: str,
) -> str | None:
    """Return why a flag cannot be confirmed; None: all that it rests on was answered."""
    for number, property_id in cells:
        if number not in answers:
            return stopped
        cell = statuses[number, property_id]
        if cell["status"] not in _ANSWERED:
            code = f" with code {cell['code']}" if cell["code"] is not None else ""
            why = cell["failure"] or f"unreadable{code}" if cell["status"] == "failed" else f"refused{code}"
            return f"the search in {run.searches[number].market} was not answered: {why}"
    return None


def _found_again(
    lake: Lake, run: ConfirmRun, flags: Sequence[Row], answers: Mapping[int, Evidence], max_body_bytes: int
) -> dict[str, Row]:
    """Return what the rule of some flags finds once the new answers follow those that the flags rest on."""
    numbers = sorted({number for flag in flags for number, _ in run.cells[flag["flag_id"]]})
    parts: dict[tuple[str, str], list[Evidence]] = defaultdict(list)
    for number in numbers:
        parts[run.searches[number].operation, run.searches[number].market].append(answers[number])
    nights = nights_of(lake, answers_behind(lake, flags), max_body_bytes)
    rows = normalised(run.run_id, parts, max_body_bytes)
    nights.append(ReplayedNight(_sweep_now(lake, run), rows))
    try:
        with replayed(lake, nights, run.analysis[flags[0]["flag_id"]], None) as session:
            return findings(session, flags[0]["relation"])
    except duckdb.Error as error:
        raise LakeError(
            f"The rule of {flags[0]['flag_id']} cannot be asked: {str(error).splitlines()[0]}",
            kept="The new answers have landed in the raw zone.",
        ) from None


def _sweep_now(lake: Lake, run: ConfirmRun) -> pa.Table:
    """Return a row of the table `sweep` for the run, after the last published one."""
    (row,) = sweep_table(lake, run.sweep_id).to_pylist()
    at = max(run.begun_at, row["started_at"] + timedelta(seconds=1))
    day = row["snapshot_date"] if run.is_simulated else at.date()
    row |= {"sweep_id": run.run_id, "started_at": at, "finished_at": at, "snapshot_date": day}
    return pa.Table.from_pylist([row], schema=sweep_table(lake, run.sweep_id).schema)
