"""A simulated world of offers: what a supplier would have answered, night by night, computed in sets by SQL.

The relations lie under `world/`, one file each. All chance is a hash of the seed and of what it decides, so any batch
of a hundred properties can be computed on its own. About 5% of the prices and of the rooms left move a night, and half
a percent of the offers goes and comes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa

from pipeline.domain.keys import policy_key, promotion_key
from pipeline.domain.penalties import Penalty, free_cancel_hours, refundability
from pipeline.lake.relations import sql_folder

FIRST_DAY = date(2025, 9, 1)
BATCH = 100
# How many offers a property has on an average night.
OFFERS_A_PROPERTY = 905

_FOLDER = Path(__file__).parent / "world"
_MEMORY_LIMIT = "2GB"

_BOARDS = ((14, "Room Only", 0), (3, "Bed and Breakfast", 900), (12, "Half Board", 2600), (1, "All Inclusive", 5100))
# Factor of the price, and the penalties.
_POLICIES: tuple[tuple[float, tuple[Penalty, ...]], ...] = (
    (1.0, ()),
    (0.88, (Penalty(None, 100.0, None, is_refundable=False),)),
    (0.97, (Penalty(24, 100.0, None, is_refundable=True),)),
    (1.0, (Penalty(72, 50.0, None, is_refundable=True), Penalty(24, 100.0, None, is_refundable=True))),
    (1.04, (Penalty(168, 100.0, 1.0, is_refundable=True),)),
)
_PROMOTIONS = {0: (), **{percent: (("discount off", f"{percent}% off"),) for percent in range(5, 35, 5)}}


@dataclass(frozen=True, slots=True)
class World:
    """How large a world is, and which one."""

    properties: int
    nights: int
    seed: int = 1
    # What is asked: `question` has all that analyses look for, `question_of_partner` one partner's nights.
    questions: str = "question"

    @classmethod
    def holding(cls, observations: int, nights: int, seed: int = 1) -> World:
        """Return the world in which about `offers` offers are seen over these nights."""
        return cls(max(observations // nights // OFFERS_A_PROPERTY, 1), nights, seed)

    @property
    def batches(self) -> range:
        """Numbers of the batches."""
        return range(-(-self.properties // BATCH))

    def started_at(self, night: int) -> datetime:
        """Start of a night's sweep."""
        return datetime.combine(FIRST_DAY, time(2, 30), UTC) + timedelta(days=night)

    def sweep_id(self, night: int) -> str:
        """Id of a night's sweep."""
        return f"{self.started_at(night):%Y%m%dT%H%M%SZ}-5eed00"


def relation(name: str) -> str:
    """Return the SQL of a relation of the world."""
    return (_FOLDER / f"{name}.sql").read_text(encoding="utf-8")


@contextmanager
def opened(world: World, scratch: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a session with what is fixed about the world; `scratch` is for what does not fit into memory."""
    with duckdb.connect(":memory:") as session:
        session.execute(f"SET memory_limit = '{_MEMORY_LIMIT}'")
        session.execute(f"SET temp_directory = '{scratch}'")
        session.execute("SET TimeZone = 'UTC'")
        session.execute("SET preserve_insertion_order = false")
        for name, value in (("seed", world.seed), ("properties", world.properties), ("nights", world.nights)):
            session.execute(f"SET VARIABLE {name} = {value}")
        session.execute(f"SET VARIABLE first_day = DATE '{FIRST_DAY}'")
        session.execute("CREATE SCHEMA mart")
        for name in ("cell_key", "offer_key"):
            session.execute((sql_folder() / "macro" / f"{name}.sql").read_text(encoding="utf-8"))
        session.execute(relation("macros"))
        for name, rows in _fixed().items():
            session.register("given", rows)
            session.execute(f"CREATE TABLE {name} AS FROM given")
            session.unregister("given")
        _create(session, "property", "product")
        session.execute(f"CREATE TABLE question AS {relation(world.questions)}")
        _create(session, "search")
        yield session


def enter_batch(session: duckdb.DuckDBPyConnection, batch: int) -> None:
    """Compute what a batch of properties offered on all nights: tables in place of the last batch's."""
    session.execute(f"SET VARIABLE batch = {batch}")
    _create(session, "room_night", "cell", "cell_night", "series", "observation", "cell_told")


def _create(session: duckdb.DuckDBPyConnection, *names: str) -> None:
    for name in names:
        session.execute(f"CREATE OR REPLACE TABLE {name} AS {relation(name)}")


def _fixed() -> dict[str, pa.Table]:
    policies, penalties = [], []
    for number, (factor, stated) in enumerate(_POLICIES):
        terms = [(p.window_hours, p.penalty_pct, p.penalty_nights, p.is_refundable) for p in stated]
        key = policy_key(terms)
        policies.append(
            {
                "policy_no": number,
                "policy_key": key,
                "refundability": refundability(p.is_refundable for p in stated),
                "free_cancel_hours": free_cancel_hours(stated),
                "factor": factor,
            }
        )
        names = ("window_hours", "penalty_pct", "penalty_nights", "is_refundable")
        penalties += [
            {"policy_key": key, "penalty_no": place, **dict(zip(names, each, strict=True))}
            for place, each in enumerate(terms)
        ]
    return {
        "board": pa.table(
            {
                "board_no": list(range(len(_BOARDS))),
                "board_id": [board[0] for board in _BOARDS],
                "board_name": [board[1] for board in _BOARDS],
                "guest_night_cents": [board[2] for board in _BOARDS],
            }
        ),
        "policy": pa.Table.from_pylist(policies),
        "policy_penalty": pa.Table.from_pylist(penalties),
        "promotion": pa.table(
            {
                "promotion_pct": pa.array(list(_PROMOTIONS), pa.int32()),
                "promotion_key": [promotion_key(stated) for stated in _PROMOTIONS.values()],
                "promo_type": [stated[0][0] if stated else None for stated in _PROMOTIONS.values()],
                "description": [stated[0][1] if stated else None for stated in _PROMOTIONS.values()],
            }
        ),
    }
