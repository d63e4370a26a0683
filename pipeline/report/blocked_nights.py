"""Nights that the audit has blocked, for the page of all nights: the published file does not know them yet."""

import json
from collections.abc import Collection
from datetime import date
from pathlib import Path
from typing import Any

from pipeline.report.menu import pages_of


def blocked_nights(root: Path, published: Collection[str]) -> list[dict[str, Any]]:
    """Return sweeps that are not published, and whose quality page below `root` says that they are blocked."""
    return [
        # Nothing of it is counted: the published file counts what it holds.
        dict.fromkeys(("planned", "offered", "failed", "offers", "price_changes"))
        | {
            "sweep_id": sweep_id,
            "snapshot_date": date.fromisoformat(sweep_id[:8]),
            "audit": "blocked",
            "pages": pages_of(root, sweep_id),
        }
        for file in root.glob("*/quality.json")
        if (sweep_id := file.parent.name) not in published and _is_blocked(file, sweep_id)
    ]


def _is_blocked(file: Path, sweep_id: str) -> bool:
    try:
        held = json.loads(file.read_bytes())
        return held["sweep_id"] == sweep_id and held["is_passed"] is False
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
