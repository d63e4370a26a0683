"""The analytics of the published file: which relations there are, in the order in which they build on each other.

Each is a view over the state that nights leave behind and over the marts; what they compare with is in `ref.analysis`.
"""

from __future__ import annotations

NIGHT: tuple[str, ...] = ("report/price_move",)

PARITY: tuple[str, ...] = ()

PROMOTIONS: tuple[str, ...] = ()

PENALTIES: tuple[str, ...] = ()

AVAILABILITY: tuple[str, ...] = ()

EVIDENCE: tuple[str, ...] = ()

# `schema/name`, as the files lie under `sql/`.
ANALYTICS = (*NIGHT, *PARITY, *PROMOTIONS, *PENALTIES, *AVAILABILITY, *EVIDENCE)
