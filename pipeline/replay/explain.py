"""A finding, flag or not, led back to raw: what was asked, what came, and whether the rule finds the same in it again.

Offline. The answers behind a flag are normalised again, published in memory, and judged by the SQL of the rule.
"""

from __future__ import annotations

import difflib
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.domain.analysis import Analysis
from pipeline.domain.errors import CorruptObject, InputError, LakeError
from pipeline.domain.search import Operation
from pipeline.domain.tables import CELL, FINDING_COLUMNS, REJECT, SEARCH
from pipeline.lake import Lake
from pipeline.lake.checksums import refuse_damaged
from pipeline.lake.database import connect, quarantine_file, query_published, select_files
from pipeline.lake.finding_rules import detectors, finding_rules
from pipeline.lake.raw import RawRecord, read_shard
from pipeline.lake.raw_answer import Evidence, evidence_at
from pipeline.lake.relations import Relation, relation, sources
from pipeline.lake.sweep_files import sweep_files
from pipeline.normalise.request import asked_of_request
from pipeline.normalise.segment import rows_of_answers
from pipeline.publish import published_sweeps
from pipeline.replay.republish import ReplayedNight, findings, replayed

Row = dict[str, Any]

# What is said of an answer in a sentence of its own.
_OF_OFFERS = ("offer", "penalty", "promotion")
_ASKED = ("market", "product_type", "check_in", "nights", "party", "currency_asked")
_NOT_COMPARED = {"subject_key"}
_FLAG_ID = re.compile(r"(?P<rule>[a-z_0-9]+)-(?P<subject_key>[0-7][0-9a-f]{15})")


@dataclass(frozen=True, slots=True)
class Observation:
    """One observation that a flag rests on: its answer, and its offer in it as normalised again; None: not in it."""

    role: str
    search: Row
    evidence: Evidence
    request: Row
    offer: Row | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One number or text of a flag, and what the rule says now."""

    name: str
    flagged: object
    recomputed: object

    @property
    def is_same(self) -> bool:
        """Whether they are the same. A sum of floats may differ in its last bits."""
        return _same(self.flagged, self.recomputed)


@dataclass(frozen=True, slots=True)
class Explanation:
    """A flag, or a finding that is none, with all that leads to its verdict."""

    flag: Row
    is_flag: bool
    """False: `flag` is a row of the relation that finds it, as it is now, and has nothing of nights."""
    rule: Relation
    observations: tuple[Observation, ...]
    sweeps: tuple[str, ...]
    prices: tuple[Row, ...]
    """Selling prices of the cell; is_flagged: the one that the finding is about; NULL: the rule is about no price."""
    comparisons: tuple[Comparison, ...]
    is_found: bool

    @property
    def is_reproduced(self) -> bool:
        """Whether the rule finds the same in the raw answers again, number by number."""
        return self.is_found and all(comparison.is_same for comparison in self.comparisons)

    @property
    def makes_flags(self) -> bool:
        """Whether nights make flags of what the rule finds."""
        return self.rule.full_name in detectors()

    @property
    def definition(self) -> str:
        """What a row of the relation is, and when it is a finding of this rule."""
        rule = finding_rules().get(self.flag["rule"])
        return f"{self.rule.grain}\n{rule.meaning}" if rule else self.rule.grain


def explain(lake: Lake, flag_id: str, max_body_bytes: int) -> Explanation:
    """Lead a flag back to its raw answers and judge them again; of a finding that is no flag, the same.

    Raises InputError for an id that the published file does not know, LakeError where raw answers are gone, and
    CorruptObject where they are not the ones that were loaded.
    """
    is_flag = bool(_rows(lake, "SELECT 1 FROM report.flag_history WHERE flag_id = $flag_id", {"flag_id": flag_id}))
    flag = flag_row(lake, flag_id) if is_flag else _finding_row(lake, flag_id) or flag_row(lake, flag_id)
    answers = answers_behind(lake, [flag])
    nights = nights_of(lake, answers, max_body_bytes)
    sweeps = published_sweeps(lake)
    if is_flag:
        entry = next(entry for entry in sweeps if entry.sweep_id == flag["last_flagged_sweep_id"])
        as_of = entry.published_at
    else:
        # What is found now is found with all that is loaded now.
        entry, as_of = sweeps[-1], None
    rule = relation(*flag["relation"].split("."))
    with replayed(lake, nights, analysis_of(entry.analysis, flag, answers), as_of) as session:
        found = findings(session, rule.full_name).get(flag_id)
        offers = rows_of(session.execute("FROM lake.offer"))
        prices = _selling_prices(session, flag, rule) if "mart.selling_price" in sources(rule) else []
    return Explanation(
        flag,
        is_flag,
        rule,
        tuple(_observations(flag, answers, offers)),
        tuple(sorted({sweep_id for sweep_id, _ in answers})),
        tuple(prices),
        tuple(_compared(flag, found)) if found else (),
        found is not None,
    )


def flag_row(lake: Lake, flag_id: str) -> Row:
    """Return the last time that a flag stood. Raises InputError, with flags like it, where there is none of that id."""
    return flag_rows(lake, [flag_id])[0]


def flag_rows(lake: Lake, flag_ids: Sequence[str]) -> list[Row]:
    """Return the last time that each of some flags stood, in their order. Raises InputError as `flag_row` does."""
    query = (
        "SELECT * FROM report.flag_history WHERE list_contains($flag_ids::VARCHAR[], flag_id) ORDER BY first_flagged_at"
    )
    last = {row["flag_id"]: row for row in _rows(lake, query, {"flag_ids": list(flag_ids)})}
    for flag_id in flag_ids:
        if flag_id not in last:
            raise _unknown(lake, flag_id)
    return [last[flag_id] for flag_id in flag_ids]


def _unknown(lake: Lake, flag_id: str) -> InputError:
    known = [row["flag_id"] for row in _rows(lake, "SELECT DISTINCT flag_id FROM report.flag_history ORDER BY ALL")]
    like = [name for name in known if flag_id and name.startswith(flag_id)][:3]
    like = like or difflib.get_close_matches(flag_id, known, 3, 0.6)
    return InputError(
        f"There is no flag {flag_id!r}.",
        hint=f"Did you mean {', '.join(like)}?"
        if like
        else 'List them: nightaudit query "SELECT flag_id, finding FROM report.flag"',
    )


def _finding_row(lake: Lake, flag_id: str) -> Row | None:
    """Return a finding from the one relation that the rule of its id names, as it is now; None: there is none."""
    named = _FLAG_ID.fullmatch(flag_id)
    rule = finding_rules().get(named["rule"]) if named else None
    if named is None or rule is None:
        return None
    found_in = rule.full_name
    # By the key, which relations have that were published before they had the id. A key that is there twice is the
    # larger finding, as it is of flags.
    columns = ", ".join(column.name for column in FINDING_COLUMNS)
    query = (
        f"SELECT $flag_id AS flag_id, {columns}, '{found_in}' AS relation FROM {found_in} "  # noqa: S608 - our own names
        "WHERE rule = $rule AND subject_key = $subject_key ORDER BY size_pct DESC NULLS LAST, finding LIMIT 1"
    )
    subject_key = int(named["subject_key"], 16)
    rows = _rows(lake, query, {"flag_id": flag_id, "rule": named["rule"], "subject_key": subject_key})
    return rows[0] if rows else None


Answers = dict[tuple[str, int], tuple[Row, Evidence]]
"""By sweep and search: the row of the table `search`, and what lies at its raw address."""


def answers_behind(lake: Lake, flags: Iterable[Row]) -> Answers:
    """Return every answer about the cells of some flags, from their first evidence to their last.

    Between the two, nights are part of the evidence too: that nothing else was seen in them. What is found of a
    property as a whole rests on observations without an offer, and on every answer about it.
    """
    items = [item for flag in flags for item in flag["evidence"]]
    if not items:
        return {}
    named = {(item["sweep_id"], item["search_id"]) for item in items}
    properties = sorted({item["property_id"] for item in items})
    first, last = min(sweep for sweep, _ in named), max(sweep for sweep, _ in named)
    sweeps = [entry.sweep_id for entry in published_sweeps(lake) if first <= entry.sweep_id <= last]
    held = {table.name: sweep_files(lake, table) for table in (CELL, SEARCH)}
    files = {name: [file for sweep in sweeps for file in of.get(sweep, [])] for name, of in held.items()}
    asked = ", ".join(_ASKED)
    with connect(lake) as session:
        session.register("named", pa.table({"sweep_id": [s for s, _ in named], "search_id": [n for _, n in named]}))
        whole = sorted({item["property_id"] for item in items if item["offer_key"] is None})
        session.register("whole", pa.table({"property_id": pa.array(whole, pa.int64())}))
        session.execute(f"CREATE TEMP VIEW cell AS {select_files('cell', files['cell'])}")
        session.execute(f"CREATE TEMP VIEW search AS {select_files('search', files['search'])}")
        ids = ", ".join(map(str, properties))
        same = " AND ".join(
            f"wanted.{name} IS NOT DISTINCT FROM about.{name}" for name in ("operation", "property_id", *_ASKED)
        )
        # A cell that was not swept has no answer to look at.
        query = f"""
            WITH about AS (
                SELECT * FROM cell WHERE property_id IN ({ids}) AND status <> 'not_swept'
            ),
            wanted AS (
                SELECT DISTINCT operation, property_id, {asked} FROM about
                SEMI JOIN named ON named.sweep_id = about.sweep_id AND named.search_id = about.search_id
            )
            SELECT DISTINCT search.* FROM (
                FROM about SEMI JOIN wanted ON {same}
                UNION ALL
                FROM about
                SEMI JOIN whole ON whole.property_id = about.property_id
                SEMI JOIN wanted ON wanted.property_id = about.property_id AND wanted.operation = about.operation
            ) AS asked
            INNER JOIN search ON search.sweep_id = asked.sweep_id AND search.search_id = asked.search_id
            ORDER BY search.raw_address
            """  # noqa: S608 - our own names, and numbers
        rows = rows_of(session.execute(query))
    lost = sorted(named - {(row["sweep_id"], row["search_id"]) for row in rows})
    if lost:
        raise _gone(lost[0][0])
    # Answers of one shard stand together, so that each shard is read once.
    records_of = lru_cache(maxsize=2)(read_shard)
    return {(row["sweep_id"], row["search_id"]): (row, _raw(lake, row, records_of)) for row in rows}


def _raw(lake: Lake, search: Row, records_of: Callable[[Lake, str, str], Sequence[RawRecord]]) -> Evidence:
    address = search["raw_address"]
    if not lake.exists(address.partition("#")[0]):
        raise _gone(search["sweep_id"])
    evidence = evidence_at(lake, address, records_of=records_of, loaded=(search["body_sha256"],))
    if changed := _changed(search, evidence.record):
        raise CorruptObject(
            f"The raw record at {address} is not the one that was loaded: its {changed} differs from lake.search.",
            kept="Nothing was changed.",
            hint="Restore the shard from a backup, or rebuild the tables from what the raw zone holds now: "
            "nightaudit rebuild",
        )
    return evidence


def _changed(search: Row, record: RawRecord) -> str:
    """Return what of a record, beside its body, is not what the tables hold of its search; empty: nothing."""
    if record.started_at != search["started_at"]:
        return "start (started_at)"
    if record.http_status != search["http_status"]:
        return "status (http_status)"
    try:
        asked = asked_of_request(record.request)
    except msgspec.MsgspecError:
        return "request"
    sent = (asked.market, asked.product_type, asked.check_in, asked.nights, asked.party, asked.currency)
    return "" if sent == tuple(search[name] for name in _ASKED) else "request"


def _gone(sweep_id: str) -> LakeError:
    return LakeError(
        f"The raw answers of the sweep {sweep_id} are gone, so the verdict cannot be recomputed.",
        kept="The flag stays in report.flag_history, with its finding and its numbers.",
        hint="Retention may have removed them (NIGHTAUDIT_RAW_NIGHTS). Restore raw/ from a backup if there is one.",
    )


def nights_of(lake: Lake, answers: Answers, max_body_bytes: int) -> list[ReplayedNight]:
    """Return the sweeps of some answers, oldest first, with the rows that the answers are normalised to again."""
    by_sweep: dict[str, dict[tuple[str, str], list[Evidence]]] = defaultdict(lambda: defaultdict(list))
    for (sweep_id, _), (search, evidence) in sorted(answers.items(), key=lambda answer: answer[0]):
        by_sweep[sweep_id][search["operation"], search["market"]].append(evidence)
    return [
        ReplayedNight(
            sweep_table(lake, sweep_id),
            _without_quarantine(lake, sweep_id, normalised(sweep_id, parts, max_body_bytes)),
        )
        for sweep_id, parts in by_sweep.items()
    ]


def normalised(
    sweep_id: str, parts: Mapping[tuple[str, str], Sequence[Evidence]], max_body_bytes: int
) -> dict[str, list[pa.Table]]:
    """Return the rows, by table, of answers by operation and market."""
    rows: dict[str, list[pa.Table]] = defaultdict(list)
    for (operation, market), evidence in parts.items():
        records = ((each.address, each.record) for each in evidence)
        for name, table in rows_of_answers(sweep_id, Operation(operation), market, records, max_body_bytes).items():
            rows[name].append(table)
    return rows


def sweep_table(lake: Lake, sweep_id: str) -> pa.Table:
    """Return a sweep's row of the table `sweep`."""
    file = lake.local(lake.table_file("sweep", sweep_id, "sweep"))
    refuse_damaged(lake.root, [file])
    return pq.read_table(file)


def _without_quarantine(lake: Lake, sweep_id: str, rows: dict[str, list[pa.Table]]) -> dict[str, list[pa.Table]]:
    """Return the rows without offers that the audit of the time took out, and with the rejects that they are now."""
    file = quarantine_file(lake, sweep_id)
    if not file.exists():
        return rows
    searches = pa.concat_tables(rows["cell"])["search_id"].combine_chunks()
    refuse_damaged(lake.root, [file])
    quarantine = pq.read_table(file, schema=REJECT.schema)
    taken = quarantine.filter(pc.is_in(quarantine["search_id"], value_set=searches))
    keys = set(zip(taken["search_id"].to_pylist(), taken["offer_no"].to_pylist(), strict=True))
    kept = {name: [_but(table, keys) for table in rows[name]] for name in _OF_OFFERS if name in rows}
    return rows | kept | {"reject": [*rows.get("reject", ()), taken]}


def _but(table: pa.Table, keys: Collection[tuple[int, int | None]]) -> pa.Table:
    held = zip(table["search_id"].to_pylist(), table["offer_no"].to_pylist(), strict=True)
    return table.filter(pa.array([key not in keys for key in held], pa.bool_()))


def analysis_of(analysis: Analysis, flag: Row, answers: Answers) -> Analysis:
    """Return what the night compared with. Which market has the most offers does not follow from a few answers."""
    if analysis.reference_market is not None:
        return analysis
    markets = [
        answers[item["sweep_id"], item["search_id"]][0]["market"]
        for item in flag["evidence"]
        if item["role"] == "reference"
    ]
    return replace(analysis, reference_market=markets[-1]) if markets else analysis


def _observations(flag: Row, answers: Answers, offers: Iterable[Row]) -> Iterable[Observation]:
    held = {(offer["sweep_id"], offer["search_id"], offer["offer_no"]): offer for offer in offers}
    for item in flag["evidence"]:
        search, evidence = answers[item["sweep_id"], item["search_id"]]
        offer = held.get((item["sweep_id"], item["search_id"], item["offer_no"]))
        yield Observation(item["role"], search, evidence, msgspec.json.decode(evidence.record.request), offer)


def _selling_prices(session: duckdb.DuckDBPyConnection, flag: Row, rule: Relation) -> list[Row]:
    names = ("property_id", "market", "product_type", "check_in", "nights", "party")
    same = " AND ".join(f"{name} IS NOT DISTINCT FROM ${name}" for name in names)
    found = session.execute(f"FROM mart.selling_price WHERE {same}", {name: flag[name] for name in names})
    prices = rows_of(found)
    if "price_input_id" not in rule.meanings:
        return [price | {"is_flagged": None} for price in prices]
    query = f"SELECT price_input_id, price_line_no FROM {rule.full_name} WHERE subject_key = ?"  # noqa: S608 - our own names
    flagged = session.execute(query, [flag["subject_key"]]).fetchall()
    return [price | {"is_flagged": (price["input_id"], price["line_no"]) in flagged} for price in prices]


def _compared(flag: Row, found: Row) -> Iterable[Comparison]:
    for column in FINDING_COLUMNS:
        if column.name not in _NOT_COMPARED:
            yield Comparison(column.name, _ordered(flag[column.name]), _ordered(found[column.name]))


def _ordered(value: object) -> object:
    return sorted(value, key=repr) if isinstance(value, list) else value


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return one == other


def _rows(lake: Lake, query: str, parameters: Mapping[str, object] | None = None) -> list[Row]:
    return rows_of(query_published(lake.published_file, query, parameters))


def rows_of(found: duckdb.DuckDBPyConnection) -> list[Row]:
    """Return the rows of a result by the names of its columns."""
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
