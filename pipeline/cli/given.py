"""Options of the command line that override the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pipeline.notify.ways import Tell, no_server
from pipeline.settings import Settings, read_settings


def settings_with(spec: Path | None, limit: int | None = None, markets: Sequence[str] | None = None) -> Settings:
    """Return the settings, with what the command line chooses to ask above those of the environment."""
    given: dict[str, Any] = {"spec": spec, "property_limit": limit, "markets": tuple(markets) if markets else None}
    return read_settings(**{name: value for name, value in given.items() if value is not None})


def notification_block() -> Callable[[str], Tell] | None:
    """Return what gives the way through a notification block of Prefect, where a server is configured."""
    if not os.environ.get("PREFECT_API_URL"):
        return None

    def through(slug: str) -> Tell:
        # Prefect is imported for this alone.
        from flows.notify import notification_block

        return notification_block(slug)

    return through


def refuse_blocks_without_server(settings: Settings) -> None:
    """Raise SettingsError where the settings name a notification block, and no Prefect server is configured."""
    if settings.notify_block and notification_block() is None:
        raise no_server(settings.notify_block)
