"""The results of re-queried flags, from the answers that have landed."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

import duckdb
import msgspec
import pyarrow as pa

from pipeline.domain.errors import LakeError, first_line
from pipeline.domain.search import ANSWERED
from pipeline.domain.tables import CONFIRMATION
from pipeline.lake import Lake
from pipeline.lake.delta import commit_rows, is_committed
from pipeline.lake.raw import raw_address
from pipeline.lake.raw_answer import Evidence, evidence_at
from pipeline.night.confirm_plan import ConfirmRun, shard_name, shard_of
from pipeline.publish import published_sweeps
from pipeline.replay.answers import answers_behind
from pipeline.replay.finding import Row, flag_rows
from pipeline.replay.republish import (
    ReplayedNight,
    ended,
    findings,
    hold_open,
    nights_of,
    normalised,
    replayed,
    sweep_table,
)

_STOPPED = "its search was not sent, or its answer did not land: the run was stopped"


def settle_left_over(lake: Lake, max_body_bytes: int) -> None:
    """Judge and store earlier runs that were killed. The caller holds the writer lock."""
    for name in sorted(lake.names("raw")):
        if lake.exists(lake.confirmation_path(name)) and not is_committed(lake, CONFIRMATION, name):
            run = msgspec.json.decode(lake.get(lake.confirmation_path(name)), type=ConfirmRun)
            settle(lake, run, max_body_bytes)


def settle(lake: Lake, run: ConfirmRun, max_body_bytes: int, stopped: str = _STOPPED) -> list[Row]:
    """Judge each flag of a run by the answers that have landed, and store the results once.

    `stopped` is the reason why other answers are missing.
    """
    answers = {
        number: evidence_at(lake, raw_address(run.run_id, shard_name(run, number), 0))
        for number in range(len(run.searches))
        if lake.exists(shard_of(run, number))
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
        found, over = _judged_again(lake, run, flags, answers, max_body_bytes)
        for flag in flags:
            flag_id = flag["flag_id"]
            now = found.get(flag_id)
            if now is not None and any(item["sweep_id"] == run.run_id for item in now["evidence"]):
                result = {"outcome": "confirmed", "size_pct": now["size_pct"], "finding": now["finding"]}
            elif now is None and flag_id in over:
                result = {"outcome": "gone"}
            else:
                result = {"outcome": "not_confirmable", "reason": _why_open(flag, run.cells[flag_id], statuses)}
            rows.append(same | flag["seen"] | result)
    table = pa.Table.from_pylist(rows, schema=CONFIRMATION.schema)
    commit_rows(lake, CONFIRMATION, table, run.run_id, "confirmations", run.run_id)
    return rows


def _statuses(run: ConfirmRun, answers: Mapping[int, Evidence], max_body_bytes: int) -> dict[tuple[int, int], Row]:
    """Return the cells by search and property, with whether the answer about them could be read completely."""
    found = {}
    for number, answer in answers.items():
        asked = run.searches[number]
        rows = normalised(run.run_id, {(asked.operation, asked.market): [answer]}, max_body_bytes)
        (search,) = rows["search"][0].to_pylist()
        # A part that names no property may be about any of them.
        unread = {row["property_id"] for table in rows.get("reject", ()) for row in table.to_pylist()}
        for cell in rows["cell"][0].to_pylist():
            is_whole = search["failure"] is None and unread.isdisjoint({cell["property_id"], None})
            found[number, cell["property_id"]] = cell | {"failure": answer.record.failure, "is_whole": is_whole}
    return found


def _reason(
    run: ConfirmRun,
    cells: Iterable[tuple[int, int]],
    answers: Mapping[int, Evidence],
    statuses: Mapping[tuple[int, int], Row],
    stopped: str,
) -> str | None:
    """Return why a flag cannot be confirmed; None: all of its evidence was answered."""
    for number, property_id in cells:
        if number not in answers:
            return stopped
        cell = statuses[number, property_id]
        if cell["status"] not in ANSWERED:
            code = f" with code {cell['code']}" if cell["code"] is not None else ""
            why = cell["failure"] or f"unreadable{code}" if cell["status"] == "failed" else f"refused{code}"
            return f"the search in {run.searches[number].market} was not answered: {why}"
    return None


def _why_open(flag: Row, cells: Iterable[tuple[int, int]], statuses: Mapping[tuple[int, int], Row]) -> str:
    """Return why a flag is neither found in the new answers nor over, as on a night that keeps it open."""
    if not all(statuses[cell]["is_whole"] for cell in cells):
        return "a part of the answers could not be read, and may show it"
    if flag["fx"] is not None:
        return "only exchange rates have moved since, or none is known: nothing shows that its prices meet"
    return "its prices are still apart, or one that they are compared with is not on sale now"


def _judged_again(
    lake: Lake, run: ConfirmRun, flags: Sequence[Row], answers: Mapping[int, Evidence], max_body_bytes: int
) -> tuple[dict[str, Row], set[str]]:
    """Return what the flags' rule finds in their evidence followed by the new answers, and which flags these end."""
    numbers = sorted({number for flag in flags for number, _ in run.cells[flag["flag_id"]]})
    parts: dict[tuple[str, str], list[Evidence]] = defaultdict(list)
    for number in numbers:
        parts[run.searches[number].operation, run.searches[number].market].append(answers[number])
    nights = nights_of(lake, answers_behind(lake, flags), max_body_bytes)
    rows = normalised(run.run_id, parts, max_body_bytes)
    nights.append(ReplayedNight(_sweep_now(lake, run), rows))
    try:
        with replayed(lake, nights, run.analysis[flags[0]["flag_id"]], None) as session:
            hold_open(session, flags)
            found = findings(session, flags[0]["relation"])
            return found, ended(session, published_sweeps(lake)[-1].analysis.silent_nights)
    except duckdb.Error as error:
        raise LakeError(
            f"The rule of {flags[0]['flag_id']} cannot be evaluated: {first_line(error)}",
            kept="The new answers have landed in the raw zone.",
            hint="See whether its rule fails for all flags, and please report it: nightaudit explain FLAG",
        ) from None


def _sweep_now(lake: Lake, run: ConfirmRun) -> pa.Table:
    """Return a row of the table `sweep` for the run, after the last published one."""
    (row,) = sweep_table(lake, run.sweep_id).to_pylist()
    at = max(run.begun_at, row["started_at"] + timedelta(seconds=1))
    day = row["snapshot_date"] if run.is_simulated else at.date()
    row |= {"sweep_id": run.run_id, "started_at": at, "finished_at": at, "snapshot_date": day}
    return pa.Table.from_pylist([row], schema=sweep_table(lake, run.sweep_id).schema)
