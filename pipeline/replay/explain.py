"""A finding traced to its raw answers: request, answer, and whether the rule finds it again. Offline.

The answers behind a flag are normalised again, published in memory, and judged by the SQL of the rule.
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import duckdb
import msgspec

from pipeline.domain.analysis import Analysis
from pipeline.domain.tables import FINDING_COLUMNS
from pipeline.lake import Lake
from pipeline.lake.database import rows_of
from pipeline.lake.pulled import refuse_pulled
from pipeline.lake.raw_answer import Evidence
from pipeline.lake.relations import Relation, detectors, finding_rules, relation, sources
from pipeline.publish import published_sweeps
from pipeline.replay.answers import Answers, answers_behind
from pipeline.replay.finding import Row, finding_row, flag_row, rows_in
from pipeline.replay.needed import needed_by
from pipeline.replay.republish import findings, lend_movement, nights_of, replayed

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")


@dataclass(frozen=True, slots=True)
class Observation:
    """One observation that a flag rests on: its answer, and its offer normalised again; None: not in the answer."""

    role: str
    search: Row
    evidence: Evidence
    request: Row
    offer: Row | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One value of a flag, and its recomputed value."""

    name: str
    flagged: object
    recomputed: object

    @property
    def is_version(self) -> bool:
        """Whether this compares versions of the rule, which an upgrade changes, not a value that the rule found."""
        return self.name == "rule_version"

    @property
    def is_same(self) -> bool:
        """Whether they are equal; sums of floats may differ in their last bits, sentences in thousands separators."""
        one, other = self.flagged, self.recomputed
        if isinstance(one, str) and isinstance(other, str):
            # Amounts in findings had none before.
            return _THOUSANDS.sub("", one) == _THOUSANDS.sub("", other)
        if isinstance(one, float) and isinstance(other, float):
            return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
        return one == other


@dataclass(frozen=True, slots=True)
class Explanation:
    """A flag, or a finding that is not a flag, with all the evidence for its verdict."""

    flag: Row
    is_flag: bool
    """False: `flag` is a present row of the relation, without the columns about nights."""
    rule: Relation
    observations: tuple[Observation, ...]
    sweeps: tuple[str, ...]
    prices: tuple[Row, ...]
    """Selling prices of the cell; is_flagged: the one in the finding; NULL: the rule is not about one price."""
    comparisons: tuple[Comparison, ...]
    is_found: bool

    @property
    def is_reproduced(self) -> bool:
        """Whether the rule, in its present version, finds the same values in the raw answers again."""
        return self.is_found and all(each.is_same or each.is_version for each in self.comparisons)

    @property
    def changed_version(self) -> Comparison | None:
        """The versions of the rule, if it is no longer the one that made the finding."""
        return next((each for each in self.comparisons if each.is_version and not each.is_same), None)

    @property
    def makes_flags(self) -> bool:
        """Whether findings of the rule become flags."""
        return self.rule.full_name in detectors()

    @property
    def definition(self) -> str:
        """The grain of the relation, and when a row is a finding of this rule."""
        rule = finding_rules().get(self.flag["rule"])
        return f"{self.rule.grain}\n{rule.meaning}" if rule else self.rule.grain


def explain(
    lake: Lake, flag_id: str, max_body_bytes: int, watch: Callable[[int, int], None] = lambda *_: None
) -> Explanation:
    """Trace a flag, or a finding that is not a flag, to its raw answers and judge them again.

    `watch` gets the number of nights that are replayed, and that of all. Raises InputError for an unknown id and in a
    folder that was pulled, LakeError if raw answers are gone, and CorruptObject if they are not those that were loaded.
    """
    refuse_pulled(lake.root)
    is_flag = bool(rows_in(lake, "SELECT 1 FROM report.flag_history WHERE flag_id = $flag_id", {"flag_id": flag_id}))
    flag = flag_row(lake, flag_id) if is_flag else finding_row(lake, flag_id) or flag_row(lake, flag_id)
    answers = answers_behind(lake, [flag])
    nights = nights_of(lake, answers, max_body_bytes)
    sweeps = published_sweeps(lake)
    if is_flag:
        entry = next(entry for entry in sweeps if entry.sweep_id == flag["last_flagged_sweep_id"])
        as_of = entry.published_at
    else:
        # A present finding uses everything that is loaded.
        entry, as_of = sweeps[-1], None
    rule = relation(*flag["relation"].split("."))
    analysis = analysis_of(entry.analysis, flag, answers)
    replay = replayed(
        lake, nights, analysis, as_of, needed=needed_by(rule), watch=lambda done: watch(done, len(nights))
    )
    with replay as session:
        if "mart.reference_price" in sources(rule):
            lend_movement(session, lake)
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


def analysis_of(analysis: Analysis, flag: Row, answers: Answers) -> Analysis:
    """Return the thresholds of the night, with its reference market.

    A few answers do not show which market has the most offers, or whether one sold nothing.
    """
    analysis = replace(analysis, silent_nights=0)
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
    rule = finding_rules().get(flag["rule"])
    # The evidence is one of the stays that such an amount adds up.
    left_out = {"subject_key", "amount"} if rule is not None and rule.adds_up else {"subject_key"}
    for column in FINDING_COLUMNS:
        if column.name not in left_out:
            yield Comparison(column.name, _ordered(flag[column.name]), _ordered(found[column.name]))


def _ordered(value: object) -> object:
    return sorted(value, key=repr) if isinstance(value, list) else value
