"""Options of the command line that override the environment."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pipeline.notify.ways import Tell, no_server
from pipeline.settings import Settings, read_settings


def settings_with(spec: Path | None, limit: int | None = None, markets: Sequence[str] | None = None) -> Settings:
    """Return the settings; options of the command line override the environment."""
    given: dict[str, Any] = {"spec": spec, "property_limit": limit, "markets": tuple(markets) if markets else None}
    return read_settings(**{name: value for name, value in given.items() if value is not None})


def notification_block() -> Callable[[str], Tell] | None:
    """Return a function for sending through a notification block of Prefect; None without a Prefect server."""
    if not os.environ.get("PREFECT_API_URL"):
        return None

    def through(slug: str) -> Tell:
        # Prefect is slow to import.
        from flows.notify import notification_block

        return notification_block(slug)

    return through


def refuse_blocks_without_server(settings: Settings) -> None:
    """Raise SettingsError if the settings name a notification block, and no Prefect server is configured."""
    if settings.notify_block and notification_block() is None:
        raise no_server(settings.notify_block)
