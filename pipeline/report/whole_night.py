"""What is unusual about a night as a whole: silent markets, a new reference market, rules that failed."""

from __future__ import annotations

from pipeline.report.page import Point, counted
from pipeline.report.read import Reader


def of_whole_night(reader: Reader) -> list[Point]:
    """Return what is unusual about the night as a whole."""
    return [*_of_silent_markets(reader), *_of_reference(reader), *_of_rules(reader)]


def _of_silent_markets(reader: Reader) -> list[Point]:
    """Say which markets sell nothing tonight, although several of their properties did: it is no property's doing."""
    return [
        Point(
            f"Call the supplier about market {row['market']}: none of its {counted(row['answered'], 'answered cell')} "
            f"has an offer. {row['properties']:,} properties were on sale there on {row['sold_date']}.",
            "coverage",
            "bad",
        )
        for row in reader.figures("silent_market").iter_rows(named=True)
    ]


def _of_reference(reader: Reader) -> list[Point]:
    """Say that another market is the reference from this night on: gaps and scores begin again with it."""
    # A file that an earlier version wrote does not say when.
    if "chosen_sweep_id" not in reader.columns("mart.reference_market"):
        return []
    chosen = reader.query("SELECT reference_market, chosen_sweep_id FROM mart.reference_market").row(0, named=True)
    if reader.is_first_night or chosen["chosen_sweep_id"] != reader.night["sweep_id"]:
        return []
    told = (
        f"From this night on, markets are compared with {chosen['reference_market']}: the previous reference market "
        "had no offers for too long. Gaps, scores and losing streaks start again."
    )
    return [Point(told, "cases", "warn")]


def _of_rules(reader: Reader) -> list[Point]:
    """Say which rules could not be asked: without it their silence would look like good news."""
    # A file that an earlier version wrote has no such table.
    there = "SELECT 1 FROM duckdb_tables() WHERE schema_name = 'state' AND table_name = 'failed_rule'"
    if reader.query(there).is_empty():
        return []
    failed = reader.query(
        "SELECT relation, reason FROM state.failed_rule WHERE sweep_id = $sweep_id ORDER BY relation",
        {"sweep_id": reader.night["sweep_id"]},
    )
    return [
        Point(f"{row['relation']} could not be evaluated: {row['reason']}", "findings_by_rule", "bad")
        for row in failed.iter_rows(named=True)
    ]
