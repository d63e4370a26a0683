"""What a published file says, in the words of the oracle: keys as what they are of, money in whole ten-thousandths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
from history import CELL, OFFER, Row
from raw_zone import Sweep

PLAIN_OFFER = tuple(name for name in OFFER if name not in {"source", "policy"})


class Published:
    """A published file, and what its keys stand for."""

    def __init__(self, file: Path, sweeps: list[Sweep]) -> None:
        self.session = duckdb.connect(":memory:")
        self.session.execute("SET TimeZone = 'UTC'")
        self.session.execute(f"ATTACH '{file}' AS published (READ_ONLY)")
        self.session.execute("USE published")
        said = {
            (sweep.sweep_id, offer["search_id"], offer["offer_no"]): offer for sweep in sweeps for offer in sweep.offers
        }
        stored = self.rows("SELECT sweep_id, search_id, offer_no, policy_key, promotion_key FROM lake.offer")
        pairs = [(row, said[row["sweep_id"], row["search_id"], row["offer_no"]]) for row in stored]
        self.policies = one_to_one((row["policy_key"], offer["policy"]) for row, offer in pairs)
        self.promotions = one_to_one((row["promotion_key"], offer["promotion"]) for row, offer in pairs)
        history = self.rows(
            f"SELECT DISTINCT offer_key, cell_key, source, policy_key, {', '.join(PLAIN_OFFER)} FROM mart.offer_history"
        )
        for row in history:
            row["policy"] = self.policies[row["policy_key"]]
        # A list and a detail answer have one key for one offer.
        self.offers = one_to_one((row["offer_key"], tuple(row[name] for name in OFFER[1:])) for row in history)
        asked = self.rows(
            f"SELECT DISTINCT mart.cell_key({', '.join(CELL[1:])}) AS cell_key, {', '.join(CELL[1:])} FROM lake.cell"
        )
        self.cells = one_to_one((row["cell_key"], tuple(row[name] for name in CELL[1:])) for row in asked + history)

    def rows(self, query: str) -> list[Row]:
        """Return what a query gives, money and whole decimals as ten-thousandths."""
        found = self.session.execute(query)
        columns = [(item[0], str(item[1])) for item in found.description]
        return [
            {
                name: int(value * 10_000) if isinstance(value, Decimal) and kind.startswith("DECIMAL(18,4)") else value
                for (name, kind), value in zip(columns, row, strict=True)
            }
            for row in found.fetchall()
        ]

    def reported(self, query: str) -> list[Row]:
        """Return what a query gives, with keys of offers, cells and policies replaced by what they stand for."""
        found = self.rows(query)
        for row in found:
            if "cell_key" in row:
                row |= dict(zip(CELL[1:], self.cells[row.pop("cell_key")], strict=True))
            if "offer_key" in row:
                row |= dict(zip(OFFER[1:], self.offers[row.pop("offer_key")], strict=True))
            if "policy_key" in row:
                row["policy"] = self.policies.get(row.pop("policy_key"))
            if "promotion_key" in row:
                row["promotion"] = self.promotions[row.pop("promotion_key")]
        return found


def one_to_one(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return pairs as a dict. Raises AssertionError where one of a pair belongs to two others."""
    found, back = {}, {}
    for one, other in pairs:
        assert found.setdefault(one, other) == other, (one, other)
        assert back.setdefault(other, one) == one, (one, other)
    return found


def difference(expected: Sequence[Row], actual: Sequence[Row]) -> list[tuple[str, Row]]:
    """Return some rows that only one of the two has; fractions are the same to nine places."""
    mine, theirs = ({_rounded(row) for row in rows} for rows in (expected, actual))
    missing = [("missing", dict(row)) for row in sorted(mine - theirs, key=repr)]
    wrong = [("wrong", dict(row)) for row in sorted(theirs - mine, key=repr)]
    counted = [] if len(expected) == len(actual) else [("rows", {"expected": len(expected), "actual": len(actual)})]
    return counted + missing[:3] + wrong[:3]


def _rounded(row: Row) -> tuple[tuple[str, Any], ...]:
    return tuple((name, _plain(value)) for name, value in sorted(row.items()))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.9g}") if abs(value) > 1e-9 else 0.0
    if isinstance(value, Decimal):
        return _plain(float(value))
    return tuple(value) if isinstance(value, list) else value
