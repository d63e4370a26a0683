"""How many rows of its tables a page holds for its script to show, sort and filter, and how many it prints."""

from collections.abc import Sequence
from typing import Final

# Rows of all tables of a page: with its charts, it stays below 2 MB.
ROWS_OF_A_PAGE: Final = 1_500
# Rows of a table that are printed, unless more are shown: all of a page would take 40 sheets.
ROWS_PRINTED: Final = 100


def rows_held(tables: Sequence[int], most: int = ROWS_OF_A_PAGE) -> list[int]:
    """Return how many rows a page holds of each table: all of a small one; large ones share equally what is left."""
    held: dict[int, int] = {}
    for place, rows in sorted(enumerate(tables), key=lambda each: each[1]):
        share = (most - sum(held.values())) // (len(tables) - len(held))
        held[place] = min(rows, share)
    return [held[place] for place in range(len(tables))]
