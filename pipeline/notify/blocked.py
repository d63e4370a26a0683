"""Messages about a sweep that the gate blocked: one per cause, repeated until it arrives.

Messages are first recorded in the lake, separately for each way; one that did not arrive is sent again with the next
audit.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from pipeline.lake import Lake
from pipeline.lake.raw import read_manifest
from pipeline.lake.simulated import SIMULATED
from pipeline.notify.outbox import Outbox, Outgoing
from pipeline.notify.ways import Ways

logger = logging.getLogger(__name__)

_OUTBOX = "audit/told.json"


class Cause(Protocol):
    """Why a sweep is blocked: a check of a table that failed, in one line."""

    @property
    def table_name(self) -> str:
        """Table that was checked."""

    @property
    def check_name(self) -> str:
        """Check that failed."""

    @property
    def line(self) -> str:
        """The cause in one line."""


@dataclass(slots=True)
class Message:
    """The message of a cause, and whether it has arrived."""

    subject: str
    text: str
    is_delivered: bool = False


# Checks that fail together with another one, by those others: they are part of its message.
_FOLLOWS = {
    "statuses_add_up": ("market_as_planned", "key"),
    "cells_as_planned": ("market_as_planned", "key"),
    "offers_not_balanced": ("key",),
    "penalties_per_offer": ("key",),
    "answered_share": ("answered_cells", "failed_share"),
    "offered_share": ("answered_share",),
    "priced_share": ("offered_share", "answered_share"),
    "price_moved_share": ("repeated_body_share",),
}

# By sweep, way and cause.
_Held = dict[str, dict[str, dict[str, Message]]]


def messages(sweep_id: str, critical: Sequence[Cause], where: str) -> dict[str, Message]:
    """Return one message per cause, however many rows, markets and checks show it; `where` says where to see more."""
    by_root: dict[str, list[Cause]] = {}
    names = {_family(cause) for cause in critical}
    for cause in sorted(critical, key=lambda each: _root(_family(each), names) != _family(each)):
        by_root.setdefault(_root(_family(cause), names), []).append(cause)
    return {
        root: Message(
            f"nightaudit: {causes[0].table_name}.{causes[0].check_name} blocks {sweep_id}",
            "\n".join(cause.line for cause in causes) + f"\nThe sweep {sweep_id} is not published. See {where}",
        )
        for root, causes in by_root.items()
    }


def _family(cause: Cause) -> str:
    # Lead times of one measure, and tables of one check, have one cause.
    return cause.check_name.partition("_lead_")[0]


def _root(name: str, failed: Collection[str]) -> str:
    parent = next((parent for parent in _FOLLOWS.get(name, ()) if parent in failed), None)
    return name if parent is None else _root(parent, failed)


def tell_of(
    lake: Lake, sweep_id: str, critical: Sequence[Cause], page: str, ways: Ways, published: Collection[str] = ()
) -> None:
    """Send, by each way, the unsent messages of a sweep's critical causes and of earlier sweeps not published since.

    `page` is the address of the sweep's quality page.
    A message that cannot be sent is only a warning. The caller holds the writer lock.
    """
    outbox: Outbox[_Held] = Outbox(lake, _OUTBOX, _Held, {})
    before = outbox.held
    where = f"{page}\n{SIMULATED}" if read_manifest(lake, sweep_id).is_simulated else page
    outbox.held = _waiting(before, sweep_id, messages(sweep_id, critical, where), ways, published)
    if outbox.held != before:
        outbox.save()
    for name, tell in ways.items():
        waiting = [
            Outgoing(message.subject, message.text, partial(setattr, message, "is_delivered", True))
            for by_way in outbox.held.values()
            for message in by_way.get(name, {}).values()
            if not message.is_delivered
        ]
        if why := outbox.send(tell, waiting):
            logger.warning("A notification could not be sent: %s. This is retried with the next audit.", why)


def _waiting(held: _Held, audited: str, found: dict[str, Message], ways: Ways, published: Collection[str]) -> _Held:
    """Return the new content of the outbox: the audited sweep's causes, without messages that are outdated."""
    kept = {
        sweep_id: {
            way: {
                cause: message
                for cause, message in messages.items()
                if message.is_delivered or (cause in found if sweep_id == audited else sweep_id not in published)
            }
            for way, messages in by_way.items()
        }
        for sweep_id, by_way in held.items()
    }
    if found and ways:
        by_way = kept.setdefault(audited, {})
        for way in ways:
            fresh = {cause: Message(message.subject, message.text) for cause, message in found.items()}
            by_way[way] = fresh | by_way.get(way, {})
    return kept
