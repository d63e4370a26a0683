"""Options of a sandbox: its world, its credentials, its address, its faults."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Final

from pipeline.sandbox.faults.faults import Faults
from pipeline.sandbox.world.world import DEFAULT_MISSING_SHARE, DEFAULT_PLANT_SHARE, DEFAULT_PROPERTIES, World

LOOPBACK: Final = "127.0.0.1"
DEFAULT_CLIENT_ID: Final = "sandbox-client"
DEFAULT_CLIENT_SECRET: Final = "sandbox-secret"  # noqa: S105 - opens nothing but this simulation


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """All options of a sandbox."""

    seed: int = 1
    night: int = 0
    today: date | None = None
    """The date that check-ins must be after; None: the date of `clock`, in UTC."""
    clock: datetime | None = None
    """Instant that all answers are dated with; None: the real time."""
    opened: date | None = None
    """Date of night 0; None: night and date advance together."""
    properties: int = DEFAULT_PROPERTIES
    plant_share: float = DEFAULT_PLANT_SHARE
    """Share of the properties with a planted anomaly."""
    missing_share: float = DEFAULT_MISSING_SHARE
    """Share of the properties whose answers lack fields or have nulls instead."""
    nulls: bool = True
    """False leaves out every field that would be null."""
    client_id: str = DEFAULT_CLIENT_ID
    client_secret: str = DEFAULT_CLIENT_SECRET
    expires_in_s: int = 3600
    rate_type_required: bool = True
    faults: Faults = field(default_factory=Faults)
    cache_mb: int = 64
    story: int = 0
    """Nights of the story in the world; 0: no story."""
    conditions_share: float = 0.0
    """Share of the properties with a shortest stay, a supplement for several rooms or a choice of meals."""

    def world(self) -> World:
        """Return the world of these options."""
        return World(
            self.seed,
            self.night,
            self.today or (self.clock or datetime.now(UTC)).date(),
            self.properties,
            self.plant_share,
            self.missing_share,
            self.nulls,
            self.opened,
            self.story,
            self.conditions_share,
        )
