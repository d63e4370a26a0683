"""Prefect's own notification blocks (Slack, e-mail, a webhook of any form) as a way to send messages."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable

from prefect.blocks.abstract import NotificationBlock
from prefect.blocks.core import Block
from prefect.settings import get_current_settings

from pipeline.domain.errors import SettingsError
from pipeline.notify.ways import Tell


def block_of_server() -> Callable[[str], Tell] | None:
    """Return what gives the way through a block, where a Prefect server is configured that keeps blocks."""
    return notification_block if get_current_settings().api.url else None


def notification_block(slug: str) -> Tell:
    """Return a way to tell through the block `type/name`. Raises SettingsError, before sending, if it cannot notify."""

    def tell(subject: str, text: str) -> None:
        block = Block.load(slug)
        if not isinstance(block, NotificationBlock):
            raise SettingsError(f"{slug!r} is not a notification block.")
        # Left to themselves, some blocks only log that a message did not arrive, and it would count as sent.
        with block.raise_on_failure():
            # Some answer at once, others with something to wait for.
            under_way: object = block.notify(text, subject)
            if inspect.isawaitable(under_way):
                asyncio.run(_awaited(under_way))

    return tell


async def _awaited(under_way: Awaitable[object]) -> None:
    await under_way
