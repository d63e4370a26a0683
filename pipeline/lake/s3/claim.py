"""The right to write to a lake on S3: claimed, kept alive while work goes on, and used to commit its files.

The claim is an entry of the log. Another machine that finds it is refused, as long as its owner was not silent for
longer than it stated, by the store's clock. After that it may begin a section of its own: then the former owner's next
version is taken, and it stops. Its own machine need not wait: the lock of the folder says that the owner is dead.
"""

from __future__ import annotations

import logging
import os
import platform
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.domain.errors import LakeBusy, NightauditError
from pipeline.lake.s3.commit_log import Act, Claim
from pipeline.lake.s3.copy import Copy, lost

logger = logging.getLogger(__name__)

# Data that cannot be recomputed is committed soon after it is written: answers, quotes, calls of the day.
_SOON = ("raw/", "quotes/", "calls/")
# A quote makes a reservation: its intent is in the store before it is asked.
_AT_ONCE = "quotes/"
_COMMIT_SECONDS = 5.0
# So many signs of life within the time after which an owner is taken for dead.
_SIGNS = 6


class Section:
    """One section of writing, from its claim to its last commit."""

    def __init__(self, copy: Copy, claim: Claim) -> None:
        self._copy = copy
        self._claim = claim
        self._landed: set[str] = set()
        self._at_landed = threading.Lock()
        self._is_lost = False
        self._ended = threading.Event()
        self._last_sign = time.monotonic()
        self._keeper = threading.Thread(target=self._keep, name="claim of the lake", daemon=True)

    def start(self) -> None:
        """Begin to commit what lands, and to renew the claim."""
        self._keeper.start()

    def written(self, path: str) -> None:
        """Know of an object that was written. Raises LakeBusy where the claim is lost: nothing more may be."""
        if self._is_lost:
            raise lost(self._copy.address)
        if path.startswith(_SOON):
            with self._at_landed:
                self._landed.add(path.rpartition("/")[0])
            if path.startswith(_AT_ONCE):
                self._commit_landed()

    def commit(self, act: Act = Act.COMMIT) -> None:
        """Commit all that has changed; nothing is half written now. Raises LakeBusy where the claim is lost."""
        if self._is_lost:
            raise lost(self._copy.address)
        self._copy.commit(act, self._claim)
        self._last_sign = time.monotonic()

    def drop_unused(self, grace_hours: float) -> None:
        """Commit all that has changed, and remove what no file has any more and is older than that."""
        self.commit()
        count = self._copy.log.remove_unused(self._copy.listing, grace_hours)
        logger.info("Removed %d unused objects from %s.", count, self._copy.address)

    def stop(self) -> None:
        """End the thread; what it is committing is committed first."""
        self._ended.set()
        self._keeper.join()

    def _commit_landed(self) -> None:
        with self._at_landed:
            folders = sorted(self._landed)
            self._landed.clear()
        try:
            self._copy.commit(Act.COMMIT, self._claim, folders)
        except NightauditError:
            with self._at_landed:
                self._landed.update(folders)
            raise
        self._last_sign = time.monotonic()

    def _keep(self) -> None:
        seconds = self._claim.seconds / _SIGNS
        while not self._ended.wait(min(_COMMIT_SECONDS, seconds)):
            try:
                if self._landed:
                    self._commit_landed()
                if time.monotonic() - self._last_sign >= seconds:
                    self._copy.commit(Act.RENEW, self._claim, ())
                    self._last_sign = time.monotonic()
            except LakeBusy as error:
                self._is_lost = True
                logger.warning("%s", error.message)
                return
            except NightauditError as error:
                # The last commit of the section meets it again, if it lasts.
                logger.warning("%s", error.message)


@contextmanager
def claimed(copy: Copy, what: str) -> Iterator[Section]:
    """Hold the lake in the store as well; the caller holds the lock of the copy, which was brought up to date.

    Raises LakeBusy where another machine holds it, or has come to hold it.
    """
    claim = Claim(secrets.token_hex(16), copy.id, f"{platform.node()}, process {os.getpid()}", what, copy.claim_seconds)
    _refuse_held(copy)
    if not copy.begin(claim):
        copy.look_again()
        _refuse_held(copy)
        raise _taken(copy, "another machine")
    section = Section(copy, claim)
    section.start()
    is_failed = True
    try:
        yield section
        is_failed = False
    finally:
        try:
            # What takes long is sent while the claim is still renewed.
            section.commit()
            section.stop()
            section.commit(Act.END)
        except NightauditError as error:
            section.stop()
            if not is_failed:
                raise
            # What ended the section is the failure to report.
            logger.warning("%s", error)


def _refuse_held(copy: Copy) -> None:
    """Raise LakeBusy where another machine holds the lake, and was not silent for too long."""
    holder = copy.listing.claim
    if holder is None or holder.copy == copy.id:
        return
    silent = copy.log.silent_seconds(copy.listing)
    if silent <= holder.seconds:
        raise _taken(copy, f"{holder.doing} ({holder.by})", holder.seconds)
    logger.warning(
        "%s (%s) has been silent for %.0f seconds without ending; this machine takes over.",
        holder.doing,
        holder.by,
        silent,
    )


def _taken(copy: Copy, by: str, seconds: float | None = None) -> LakeBusy:
    takes_over = f" If its machine has died, another may write after {seconds:.0f} seconds." if seconds else ""
    return LakeBusy(
        f"The lake {copy.address} is being written by {by}.",
        kept="Nothing was started.",
        hint=f"Wait until it ends, or use another lake (NIGHTAUDIT_LAKE). Reading is always possible.{takes_over}",
    )
