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
    """Return `notification_block` if a Prefect server is configured, which keeps the blocks; otherwise None."""
    return notification_block if get_current_settings().api.url else None


def notification_block(slug: str) -> Tell:
    """Return a way to send through the block `type/name`. It raises SettingsError if the block cannot notify."""

    def tell(subject: str, text: str) -> None:
        block = Block.load(slug)
        if not isinstance(block, NotificationBlock):
            raise SettingsError(f"{slug!r} is not a notification block.")
        # By default some blocks only log a failure, and the message would count as sent.
        with block.raise_on_failure():
            # Some blocks return an awaitable.
            under_way: object = block.notify(text, subject)
            if inspect.isawaitable(under_way):
                asyncio.run(_awaited(under_way))

    return tell


async def _awaited(under_way: Awaitable[object]) -> None:
    await under_way
