"""Text on our colours: white or black, whichever contrasts more, at least 4.5 to 1 on any colour."""

from collections.abc import Sequence
from typing import Final

LIGHT, DARK = "#ffffff", "#000000"

_Colour = tuple[float, float, float]
# Relative luminance (WCAG) at which white and black contrast alike.
_MIDDLE: Final = 0.179


def is_dark(colour: str) -> bool:
    """Return whether a colour such as `#2c64a0` needs light text."""
    return _luminance(_parts(colour)) < _MIDDLE


def is_dark_at(value: float, lowest: float, highest: float, colours: Sequence[str]) -> bool:
    """Return whether the field of a value needs light text, on a scale with evenly spaced colours."""
    steps = len(colours) - 1
    at = steps * min(1.0, max(0.0, (value - lowest) / (highest - lowest)))
    before = min(int(at), steps - 1)
    one, other = _parts(colours[before]), _parts(colours[before + 1])
    red, green, blue = (a + (b - a) * (at - before) for a, b in zip(one, other, strict=True))
    return _luminance((red, green, blue)) < _MIDDLE


def _parts(colour: str) -> _Colour:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue


def _luminance(colour: _Colour) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (each / 255 for each in colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
