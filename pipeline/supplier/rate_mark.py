"""Whether the workers of a cluster share the rate of the night that gives them searches.

The night keeps a mark in its Redis. A worker that names another server, or another database of it, does not see it: it
would send at a rate of its own.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from pipeline.domain.errors import NightauditError
from pipeline.settings import read_settings
from pipeline.supplier.rate_store import open_store
from pipeline.supplier.store_away import Patience, told_as_ours

# The mark is renewed far more often than it lapses, as a Redis that restarts may have lost it.
_LASTS_SECONDS = 60
_RENEWED_SECONDS = 5.0
_OTHER = "names another Redis server or database in NIGHTAUDIT_RATE_STORE, so it would send at a rate of its own"
# The marks that this process has seen: it need not look again, even if Redis loses them.
_seen: set[str] = set()


@dataclass(frozen=True, slots=True)
class RateProbe:
    """Whether a worker sees the mark of a night. A worker without a rate store sends no searches, so it passes."""

    mark: str

    def __call__(self) -> str:
        """Return why it cannot share the rate; empty: it can."""
        try:
            return "" if self._is_seen() else _OTHER
        except NightauditError as error:
            return f"cannot share the rate: {error.message}"

    def patiently(self) -> str:
        """Do the same for a worker that has joined late, at a time when Redis may have just lost the mark."""
        until = time.monotonic() + 2 * _RENEWED_SECONDS
        while (why := self()) == _OTHER and time.monotonic() < until:
            time.sleep(_RENEWED_SECONDS / 10)
        return why

    def _is_seen(self) -> bool:
        if self.mark in _seen:
            return True
        store_named = read_settings().rate_store
        if store_named is None:
            return True
        address = store_named.get_secret_value()
        with told_as_ours(), open_store(address) as store:
            is_there = store.get(_key(self.mark)) is not None
        if is_there:
            _seen.add(self.mark)
            # The first block may come while Redis is being restarted: this worker waits for it like the others.
            Patience(address).answered()
        return is_there


@contextmanager
def marked(address: str) -> Iterator[RateProbe]:
    """Keep a mark in the store at `address`; yield what a worker checks. Raises RateStoreAway and RateStoreRefused."""
    store, mark, ended = open_store(address), secrets.token_hex(8), threading.Event()

    def put() -> None:
        with told_as_ours():
            store.set(_key(mark), "", ex=_LASTS_SECONDS)

    def keep() -> None:
        while not ended.wait(_RENEWED_SECONDS):
            # The requests that need the store report it.
            with suppress(NightauditError):
                put()

    put()
    keeper = threading.Thread(target=keep, name="rate mark", daemon=True)
    keeper.start()
    try:
        yield RateProbe(mark)
    finally:
        ended.set()
        keeper.join()
        # It lapses by itself.
        store.close()


def _key(mark: str) -> str:
    return f"nightaudit:night:{mark}"
