"""Whether the published night is simulated, and how that is said."""

from pathlib import Path
from typing import Final

from pipeline.lake.database import query_published

SIMULATED: Final = "Simulated data: the bundled sandbox answered, not a supplier."


def simulated_note(file: Path) -> str:
    """Return what to say about a published file: that its last night is simulated, or nothing."""
    last = query_published(file, "SELECT is_simulated FROM mart.sweep ORDER BY started_at DESC LIMIT 1").fetchone()
    return SIMULATED if last and last[0] else ""
