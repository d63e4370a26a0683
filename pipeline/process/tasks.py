"""Tasks that run side by side."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pipeline.domain.errors import NightauditError


@asynccontextmanager
async def one_failure() -> AsyncIterator[None]:
    """Raise the first failure of a task group instead of a group: one cause often fails several tasks at once."""
    try:
        yield
    except BaseExceptionGroup as failures:
        own, others = failures.split(NightauditError)
        raise (own if others is None and own is not None else failures).exceptions[0] from None
