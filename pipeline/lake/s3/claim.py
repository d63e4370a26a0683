"""The claim of a writer on a lake on S3: taken, renewed while it works, and needed to commit files.

The claim is an entry of the log. Other machines are refused until its owner has been silent for longer than the claim
states, by the store's clock. Then one may begin a section of its own, so the former owner finds its next version taken
and stops. A new process on the owner's machine need not wait: the folder's lock shows that the owner has died.
"""

import logging
import os
import platform
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from pipeline.domain.errors import LakeBusy, NightauditError
from pipeline.lake.s3.commit_log import Act, Claim, lost
from pipeline.lake.s3.copy import Copy
from pipeline.lake.s3.in_place import InPlace
from pipeline.lake.writer_lock import busy

logger = logging.getLogger(__name__)

# Data that cannot be recomputed is committed soon after it is written: answers, quotes, calls of the day.
_SOON = ("raw/", "quotes/", "calls/")
# A quote makes a reservation, so its intent is committed before it is sent.
_AT_ONCE = "quotes/"
# After a silence, no more is requested before it is known that no other machine has taken over.
_ANSWERS = "raw/"
_COMMIT_SECONDS = 5.0
# Signs of life within the time after which an owner is considered dead.
_SIGNS = 6


class Section:
    """One section of writing, from its claim to its last commit."""

    def __init__(self, copy: Copy, claim: Claim) -> None:
        self._copy = copy
        self._claim = claim
        self._in_place = InPlace(copy.address)
        self._landed: set[str] = set()
        self._at_landed = threading.Lock()
        self._is_lost = False
        self._ended = threading.Event()
        self._last_sign = time.monotonic()
        self._keeper = threading.Thread(target=self._keep, name="claim of the lake", daemon=True)

    def start(self) -> None:
        """Start to commit landed files and to renew the claim."""
        self._keeper.start()

    def written(self, path: str) -> None:
        """Register a written object. Raises LakeBusy if the claim is lost: nothing more may be written."""
        if self._is_lost:
            raise lost(self._copy.address)
        if path.startswith(_SOON):
            with self._at_landed:
                self._landed.add(path.rpartition("/")[0])
            if path.startswith(_AT_ONCE) or (path.startswith(_ANSWERS) and self._may_be_lost):
                self._commit_landed()

    def commit(self, act: Act = Act.COMMIT) -> None:
        """Commit all changes, at a time when no file is half written. Raises LakeBusy if the claim is lost."""
        if self._is_lost:
            raise lost(self._copy.address)
        self._copy.commit(act, self._claim)
        self._last_sign = time.monotonic()
        if act is Act.COMMIT:
            self._in_place.update(dict(self._copy.listing.files))

    def drop_unused(self, grace_hours: float) -> None:
        """Commit all changes, and remove unused objects that are older than that."""
        self.commit()
        needed = self._copy.handed.remove_unneeded(self._copy.listing.files, grace_hours)
        self._in_place.compare()
        count = self._copy.log.remove_unused(self._copy.listing, grace_hours, needed)
        logger.info("Removed %d unused objects from %s.", count, self._copy.address)

    def stop(self) -> None:
        """End the thread after its present commit."""
        self._ended.set()
        self._keeper.join()

    @property
    def _may_be_lost(self) -> bool:
        """Whether another machine may have taken over, which the next commit shows."""
        return time.monotonic() - self._last_sign > self._claim.seconds

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
                # If it persists, the last commit of the section reports it.
                logger.warning("%s", error.message)


@contextmanager
def brought_up_and_claimed(copy: Copy, what: str, locked: AbstractContextManager[None]) -> Iterator[Section]:
    """Bring a copy up to date, hold the lock of its folder (`locked`), and claim the lake in the store.

    Raises LakeBusy if another process of this machine, or another machine, is writing to the lake.
    """
    with ExitStack() as held:
        with copy.alone():
            is_up_to_date = copy.bring_up(is_to_write=True)
            held.enter_context(locked)
            if not is_up_to_date:
                raise LakeBusy(
                    f"Another process on this machine was writing to the lake {copy.address} until just now.",
                    kept="Nothing was started.",
                    hint="Run the command again.",
                )
            section = held.enter_context(_claimed(copy, what))
        yield section


@contextmanager
def _claimed(copy: Copy, what: str) -> Iterator[Section]:
    """Claim the lake in the store; the caller holds the lock of the copy, which is up to date.

    Raises LakeBusy if another machine holds it, or has taken it over.
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
            # Most files are uploaded here, while the claim is still renewed.
            section.commit()
            section.stop()
            section.commit(Act.END)
        except NightauditError as error:
            section.stop()
            if not is_failed:
                raise
            # The failure that ended the section is the one to report.
            logger.warning("%s", error)


def _refuse_held(copy: Copy) -> None:
    """Raise LakeBusy if another machine holds the lake and has not been silent for too long."""
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
    return busy(copy.address, by, takes_over)
