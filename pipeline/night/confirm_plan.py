"""The plan of a run of confirmations: flags, the cells that they rest on, and the fewest searches that cover them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import chain

import xxhash

from pipeline.domain.analysis import Analysis
from pipeline.domain.errors import InputError, LakeError, NothingSent
from pipeline.domain.search import MAX_PROPERTIES_PER_SEARCH, Operation, ProductType, Search
from pipeline.domain.stay import Party, Stay
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.lake.raw import read_manifest
from pipeline.lake.relations import finding_rules
from pipeline.publish import published_sweeps
from pipeline.replay.answers import Answers, answers_behind
from pipeline.replay.explain import analysis_of
from pipeline.replay.finding import Row, flag_rows

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
        """Return the planned search."""
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
    """The request of a run. `cells` has, for each flag, the numbers of its searches and the property in each.

    `refused` are flags that cannot be re-queried, with the reason.
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
    """By flag: the thresholds of its night."""


def choose_flags(lake: Lake, flag_ids: Sequence[str], rules: Sequence[str], limit: int) -> list[Row]:
    """Return the named open flags, or the `limit` largest ones of some rules; of all rules if none is named.

    Raises InputError for an unknown flag or rule, and NothingSent if one is no longer open or there is none at all.
    """
    if flag_ids:
        flags = flag_rows(lake, list(dict.fromkeys(flag_ids)))
        for flag in flags:
            if flag["resolved_at"] is not None:
                raise NothingSent(
                    f"The flag {flag['flag_id']} is no longer open: it ended at {flag['resolved_at']} "
                    f"({flag['ended_by']}).",
                    hint='List the open ones: nightaudit query "SELECT flag_id, finding FROM report.flag"',
                )
        return flags
    if unknown := [rule for rule in rules if rule not in finding_rules()]:
        raise InputError(
            f"There is no rule {' or '.join(unknown)}.",
            kept="Nothing was sent.",
            hint=f"The rules: {', '.join(sorted(finding_rules()))}.",
        )
    query = (
        "SELECT flag_id FROM report.flag WHERE len($rules::VARCHAR[]) = 0 OR list_contains($rules::VARCHAR[], rule) "
        "ORDER BY abs(size_pct) DESC NULLS LAST, flag_id LIMIT $limit"
    )
    found = query_published(lake.published_file, query, {"rules": list(rules), "limit": limit}).fetchall()
    if not found:
        raise NothingSent(
            f"No flag{' of the rule ' + ' or '.join(rules) if rules else ''} is open.",
            hint='Count open flags by rule: nightaudit query "SELECT rule, count(*) FROM report.flag GROUP BY ALL"',
        )
    return flag_rows(lake, [flag_id for (flag_id,) in found])


def plan_run(
    lake: Lake, flags: Sequence[Row], sweep_id: str, begun_at: datetime, today: date, cap: int
) -> tuple[ConfirmRun, int]:
    """Return the run that re-queries as many flags as `cap` searches allow, and how many are left."""
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
    content = f"{begun_at.isoformat()} {sorted(wanted)} {sorted(refused)}"
    run = ConfirmRun(
        f"confirm-{begun_at:%Y%m%dT%H%M%S%fZ}-{xxhash.xxh3_64_hexdigest(content.encode())[:6]}",
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
    """Return the cells that a flag rests on: their request and property."""
    found: dict[_Cell, None] = {}
    for item in flag["evidence"]:
        search = answers[item["sweep_id"], item["search_id"]][0]
        kind: _Kind = tuple(search[name] for name in _ASKED)
        found[kind, item["property_id"]] = None
    return list(found)


def _batched(cells: Iterable[_Cell]) -> list[AskedAgain]:
    """Return the fewest searches that cover all of the cells."""
    alike: dict[_Kind, list[int]] = defaultdict(list)
    for kind, property_id in dict.fromkeys(cells):
        alike[kind].append(property_id)
    searches = []
    for kind, ids in alike.items():
        most = MAX_PROPERTIES_PER_SEARCH if kind[0] == Operation.MULTI else 1
        parts = (tuple(ids[start : start + most]) for start in range(0, len(ids), most))
        searches += [AskedAgain(kind, part) for part in parts]
    return searches


def shard_name(run: ConfirmRun, number: int) -> str:
    """Return the name of the shard of one search of a run."""
    return f"{run.searches[number].operation}-{run.searches[number].market}-{number:06d}"


def shard_of(run: ConfirmRun, number: int) -> str:
    """Return the object that holds the answer of one search of a run."""
    return Lake.shard_path(run.run_id, shard_name(run, number))
