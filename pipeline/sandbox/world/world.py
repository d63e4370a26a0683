"""The properties of a seed on one night. Pure: no clock, no network, and everything is built on first use."""

from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any, Final, Self

from pipeline.sandbox.world import identifiers, planted, story
from pipeline.sandbox.world.profiles import Profile, build

DEFAULT_PROPERTIES: Final = 3000
DEFAULT_PLANT_SHARE: Final = 0.02
DEFAULT_MISSING_SHARE: Final = 0.05


@dataclass(slots=True)
class World:
    """The properties of a seed on one night.

    The same arguments give the same answers to the byte. `night` counts nights from an arbitrary 0 and moves
    prices and availability; `today` is the date that decides which check-ins lie in the future and how near they
    are. Nothing is built before it is asked for.

    `opened` is the date of night 0, by default the one that lets night and date advance together. Prices follow the
    lead time of the night, not of the date, so that two nights of one date differ like any two nights.

    `plant_share` is the share of the properties with a planted anomaly, `missing_share` that of the properties whose
    answers lack documented fields; `nulls` False leaves out what would be null.

    `story` is the number of nights of the story that the world tells (`world.story`), 0 for none; `conditions_share`
    is the share of the properties with conditions of their own (`profiles.Conditions`).
    """

    seed: int
    night: int
    today: date
    properties: int = DEFAULT_PROPERTIES
    plant_share: float = DEFAULT_PLANT_SHARE
    missing_share: float = DEFAULT_MISSING_SHARE
    nulls: bool = True
    opened: date | None = None
    story: int = 0
    conditions_share: float = 0.0
    _profiles: dict[int, Profile] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.night < 0:
            raise ValueError(f"a night is 0 or later, not {self.night}")
        if not 0 <= self.properties <= identifiers.MAX_PROPERTIES:
            raise ValueError(f"a world has 0 to {identifiers.MAX_PROPERTIES} properties, not {self.properties}")

    def at(self, night: int, today: date) -> Self:
        """Return the same properties on another night, keeping what was already built."""
        return replace(self, night=night, today=today)

    def price_lead_days(self, check_in: date) -> int:
        """Return the days from this night's own date to check-in: what prices and sales are derived from."""
        tonight = self.today if self.opened is None else self.opened + timedelta(days=self.night)
        return (check_in - tonight).days

    def property_ids(self) -> list[int]:
        """Return the id of every property."""
        return identifiers.property_ids(self.seed, self.properties)

    def opaque_pairs(self) -> list[tuple[int, int]]:
        """Return (branded id, unbranded id) of every opaque pair."""
        return identifiers.opaque_pairs(self.seed, self.properties)

    def planted(self) -> list[dict[str, Any]]:
        """Return every planted anomaly with the cells that carry it."""
        return planted.planted(self.seed, self.properties, self.plant_share)

    def find(self, property_id: int) -> Profile | None:
        """Return the property with this id; None if there is none."""
        index = identifiers.property_index(self.seed, property_id, self.properties)
        if index is None:
            return None
        profile = self._profiles.get(index)
        if profile is None:
            profile = self._profiles[index] = build(self.seed, index, self.plant_share, self.conditions_share)
        if not self.story:
            return profile
        return story.reported(profile, self.night, self.story, self.opened or self.today - timedelta(days=self.night))
