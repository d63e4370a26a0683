"""The summary of the digest: its title, main sentences and main numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipeline.domain.quantities import counted
from pipeline.domain.search import ANSWERED
from pipeline.report.case_calls import cases_points
from pipeline.report.cases import noted_of, number_of, problems, waiting_of
from pipeline.report.ended_cases import ended_points, ended_problems
from pipeline.report.findings import Flags, by_severity
from pipeline.report.page import Point, money, percent, share, shown
from pipeline.report.read import Reader
from pipeline.report.whole_night import of_whole_night

# Share of failed, rejected or not swept cells from which a night counts as bad.
_MANY_LOST = 0.05
# Nights over which new and gone offers are added up.
_RECENT = 7


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of cases, findings and prices: the number of moves, and the largest move of each property."""

    cases: pl.DataFrame
    ended_cases: pl.DataFrame
    standing: pl.DataFrame
    new: Flags
    ended: Flags
    # The row of `sql/page/price_move_total.sql`.
    moves: Mapping[str, Any]
    largest: pl.DataFrame


def headline(reader: Reader, changes: Changes) -> str:
    """Return the title of the digest."""
    standing = problems(changes.cases)
    if reader.is_first_night:
        night = reader.night
        if reader.scope.words:
            return f"First night: {standing}"
        offers, cells = counted(night["offers"], "offer"), counted(night["planned"], "planned cell")
        return f"First night: {offers} in {cells}, {standing}"
    new = changes.cases.filter(pl.col("status") == "new")
    moved = counted(changes.moves["offers"], "price")
    if reader.scope.property_id is not None:
        # A property has little that is new; calls are about its open cases.
        whom = reader.about or f"Property {reader.scope.property_id}"
        return f"{whom}: {standing} open, {number_of(new):,} new; {moved} changed"
    ended, before = ended_problems(changes.ended_cases).height, changes.cases.filter(pl.col("status") != "new")
    # As many as the summary says: what was acknowledged or muted needs no decision.
    older, is_noted = number_of(waiting_of(before)), f" {noted};" if (noted := noted_of(before)) else ""
    return f"{problems(new, 'new problem')}, {older:,} older, {ended:,} ended;{is_noted} {moved} changed"


def points(reader: Reader, changes: Changes) -> list[Point]:
    """Return the main sentences; in a filtered digest, only those about the filtered data.

    Sentences about all properties come first, as they may be the reason not to call one.
    """
    changed = [
        *cases_points(changes.cases, reader.figures("silent_market")["market"].to_list()),
        *ended_points(changes.ended_cases),
        *_of_findings(reader, changes),
        *_of_prices(reader, changes),
    ]
    if reader.scope.words:
        return changed
    return [*of_whole_night(reader), *changed, _of_coverage(reader), _of_quality(reader)]


def tiles(reader: Reader, changes: Changes) -> list[tuple[str, str]]:
    """Return the main numbers; in a filtered digest, only those about the filtered data."""
    night = reader.night
    limited = [
        (shown(changes.moves["offers"], 0), "prices changed"),
        (shown(changes.standing.height, 0), "findings open"),
        (shown(changes.new.number, 0), "findings new"),
        (shown(changes.ended.number, 0), "findings ended"),
    ]
    if reader.scope.words:
        return limited
    of_all = [
        (share(answered(night), night["planned"]), f"of {counted(night['planned'], 'planned cell')} answered"),
        (shown(night["offers"], 0), "offers stored"),
    ]
    if reader.is_first_night:
        return [*of_all, (shown(changes.standing.height, 0), "findings open")]
    # The very first night is left out, as all its offers are new.
    recent = reader.nights[:-1][:_RECENT]
    new = sum(each["offers_first"] + each["offers_back"] for each in recent)
    gone = sum(each["offers_gone"] for each in recent)

    def in_all(offers: int) -> str:
        return f"; {offers:,} over the last {len(recent)} nights" if len(recent) > 1 else ""

    # A check-in date that was not requested before brings offers, but the market did not grow.
    first_asked = reader.total("offers_of_new_cells")["offers"]
    of_these = f", {first_asked:,} of them in cells first answered now" if first_asked else ""
    return [
        *of_all,
        (shown(night["offers_first"] + night["offers_back"], 0), f"offers new or back tonight{of_these}{in_all(new)}"),
        (shown(night["offers_gone"], 0), f"offers gone tonight{in_all(gone)}"),
        *limited,
    ]


def answered(night: Mapping[str, Any]) -> int:
    """Return the number of a night's answered cells."""
    return sum(int(night[status]) for status in ANSWERED)


def _of_findings(reader: Reader, changes: Changes) -> list[Point]:
    new, ended, standing = changes.new.narrow, changes.ended.number, changes.standing.height
    if new.height == 0:
        return [Point(f"No new findings; {ended:,} ended, {standing:,} are open.", "ended_findings", "good")]
    tone = "bad" if "high" in new["severity"] else "warn"
    when = "because this is the first night" if reader.is_first_night else f"{ended:,} ended"
    text = f"{counted(new.height, 'new finding')} ({by_severity(new)}), {when}; {standing:,} are open."
    return [Point(text, "new_findings", tone)]


def _of_prices(reader: Reader, changes: Changes) -> list[Point]:
    """Return the sentence about price changes and the largest one."""
    if reader.is_first_night:
        return []
    if changes.largest.height == 0:
        return [Point("No price changed among offers on sale on both nights.", "price_changes")]
    row, moves = changes.largest.row(0, named=True), changes.moves
    name = f"{row['property_name']}, " if row["property_name"] else ""
    largest = f"{percent(row['change_pct'], is_change=True)}, to {money(row['total'], row['currency'])}"
    return [
        Point(
            f"{counted(moves['rose'], 'price')} rose and {moves['fell']:,} fell. The largest move: {largest} "
            f"({name}property {row['property_id']}, {row['market']}, check-in {row['check_in']}).",
            "largest_moves",
        )
    ]


def _of_coverage(reader: Reader) -> Point:
    """Return the sentence about answered cells, compared with the night before."""
    night = reader.night
    reported = (
        f"{share(answered(night), night['planned'])} of {counted(night['planned'], 'planned cell')} were answered"
    )
    lost = night["failed"] + night["not_swept"] + night["rejected"]
    tone = "good" if lost == 0 else "warn" if lost < _MANY_LOST * night["planned"] else "bad"
    before = ""
    if not reader.is_first_night:
        earlier = reader.nights[1]
        before = f"; the night before {share(answered(earlier), earlier['planned'])} of {earlier['planned']:,}"
    rejected = ""
    if night["rejected"]:
        rejected = f", {night['rejected']:,} rejected by the supplier ({_markets_with(reader, 'rejected')})"
    left = ""
    if night["not_swept"]:
        markets = _markets_with(reader, "not_swept")
        left = f", {night['not_swept']:,} not requested, because the night ended early ({markets})"
    return Point(f"{reported}, {night['failed']:,} failed{rejected}{left}{before}.", "coverage", tone)


def _markets_with(reader: Reader, status: str) -> str:
    """Return the markets with cells of a status, `rejected` or `not_swept`."""
    return ", ".join(reader.figures("unanswered_market").filter(pl.col(status) > 0)["market"])


def _of_quality(reader: Reader) -> Point:
    night, counts = reader.night, checks(reader)
    if not counts:
        return Point("The night was published without an audit.", "quality", "warn")
    failed, critical = counts["failed"], counts["critical"]
    if night["audit"] == "overridden":
        return Point(
            f"The audit failed ({critical:,} critical of {counted(counts['checks'], 'check')}) and was overridden.",
            "quality",
            "bad",
        )
    reported = (
        f"{failed:,} of {counted(counts['checks'], 'check')} failed, none of them critical"
        if failed
        else "no check failed"
    )
    waiting = counts["not_judged"]
    cold = f"; {counted(waiting, 'check needs', 'checks need')} more nights to be judged" if waiting else ""
    return Point(f"The audit passed: {reported}{cold}.", "quality", "warn" if failed else "good")


def checks(reader: Reader) -> dict[str, int]:
    """Return the night's checks by result; empty without an audit."""
    counts = reader.total("quality_total")
    return counts if counts["checks"] else {}
