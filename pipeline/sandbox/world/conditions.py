"""Conditions that most properties do not have: a shortest stay, another price for several rooms, a choice of meals."""

from typing import Final, NamedTuple

from pipeline.sandbox.world.hashes import Dice

# Room only, half board and full board in one property, so that the prices of boards can be compared.
_MEALS: Final = (14, 12, 10)


class Conditions(NamedTuple):
    """Conditions of a property. `boards` None = those that it has anyway."""

    shortest_stay: int = 1
    """Fewest nights that it sells."""
    several_rooms: float = 1.0
    """What each of several rooms that are booked together costs, as a share of its price alone."""
    boards: tuple[int, ...] | None = None


_USUAL: Final = Conditions()


def conditions_of(seed: int, index: int, share: float) -> Conditions:
    """Return the conditions of a property, the usual ones in all but `share` of them. Twins share theirs."""
    dice = Dice(seed, index, 9)
    if dice.below(1_000_000) >= share * 1_000_000:
        return _USUAL
    return Conditions(
        shortest_stay=dice.between(1, 3),
        several_rooms=(100 + dice.between(-5, 15)) / 100,
        boards=_MEALS if dice.chance(500) else None,
    )
