"""How sure a share is."""

from __future__ import annotations

import math


def share_bound(part: int, whole: int, side: int) -> float:
    """Return a bound of a share: Wilson's 95% interval."""
    share, z = part / whole, 1.96
    root = z * math.sqrt(share * (1 - share) / whole + z * z / 4 / whole / whole)
    return (share + z * z / 2 / whole + side * root) / (1 + z * z / whole)
