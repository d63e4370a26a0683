"""Telling somebody that a sweep was blocked: one message a cause, until it has arrived.

What is to be told is written down in the lake before it is sent, for each way of telling by itself: whom a message did
not reach is told the next time that anything is judged, and nobody is told twice. A message whose sending was cut short
may come again.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pipeline.audit.results import Audit, Cause
from pipeline.domain.errors import CorruptObject
from pipeline.lake import Lake
from pipeline.notify.ways import NotDelivered, Tell, Ways

logger = logging.getLogger(__name__)

_OUTBOX = "audit/told.json"


@dataclass(slots=True)
class Message:
    """What somebody is told of a cause, and whether it has arrived."""

    subject: str
    text: str
    is_delivered: bool = False


# Checks that cannot but fail with another one that has failed: they are told of in its message.
_FOLLOWS = {
    "statuses_add_up": ("market_as_planned", "key"),
    "cells_as_planned": ("market_as_planned", "key"),
    "offers_not_balanced": ("key",),
    "penalties_per_offer": ("key",),
    "answered_share": ("failed_share",),
    "offered_share": ("answered_share",),
    "priced_share": ("offered_share", "answered_share"),
    "price_changed_share": ("repeated_body_share",),
}

# Sweep, way of telling and cause.
_Outbox = dict[str, dict[str, dict[str, Message]]]


def messages(audit: Audit, page: Path) -> dict[str, Message]:
    """Return the message of each cause, however many rows, markets and checks show it."""
    by_root: dict[str, list[Cause]] = {}
    critical = audit.causes("critical")
    names = {_family(cause) for cause in critical}
    for cause in sorted(critical, key=lambda each: _root(_family(each), names) != _family(each)):
        by_root.setdefault(_root(_family(cause), names), []).append(cause)
    return {
        root: Message(
            f"nightaudit: {causes[0].table_name}.{causes[0].check_name} blocks {audit.sweep_id}",
            "\n".join(cause.line for cause in causes) + f"\nThe sweep {audit.sweep_id} is not published. See {page}",
        )
        for root, causes in by_root.items()
    }


def _family(cause: Cause) -> str:
    # Lead times of one measure, and tables of one check, are one matter.
    return cause.check_name.partition("_lead_")[0]


def _root(name: str, failed: Collection[str]) -> str:
    parent = next((parent for parent in _FOLLOWS.get(name, ()) if parent in failed), None)
    return name if parent is None else _root(parent, failed)


def tell_of(lake: Lake, audit: Audit, page: Path, ways: Ways, published: Collection[str] = ()) -> None:
    """Tell by each way what it was not told yet of this audit, and of earlier ones of sweeps not published since.

    A message that cannot be sent is a warning: what blocks the sweep is the news. The caller holds the writer lock.
    """
    told = _read(lake)
    waiting = _waiting(told, audit, page, ways, published)
    if waiting != told:
        _write(lake, waiting)
    for name, tell in ways.items():
        _deliver(lake, waiting, name, tell)


def _waiting(outbox: _Outbox, audit: Audit, page: Path, ways: Ways, published: Collection[str]) -> _Outbox:
    """Return the outbox with this audit's causes, and without what is no news any more."""
    found = messages(audit, page)
    kept = {
        sweep_id: {
            way: {
                cause: message
                for cause, message in told.items()
                if message.is_delivered or (cause in found if sweep_id == audit.sweep_id else sweep_id not in published)
            }
            for way, told in by_way.items()
        }
        for sweep_id, by_way in outbox.items()
    }
    if found and ways:
        by_way = kept.setdefault(audit.sweep_id, {})
        for way in ways:
            by_way[way] = messages(audit, page) | by_way.get(way, {})
    return kept


def _deliver(lake: Lake, outbox: _Outbox, way: str, tell: Tell) -> None:
    for by_way in outbox.values():
        for message in by_way.get(way, {}).values():
            if message.is_delivered:
                continue
            try:
                tell(message.subject, message.text)
            except Exception as error:
                # The text of other errors may hold the secret part of an address.
                why = str(error) if isinstance(error, NotDelivered) else type(error).__name__
                logger.warning("A notification could not be sent: %s. It is tried again with the next audit.", why)
                return
            message.is_delivered = True
            # After each: what was sent is not to be sent again, whatever happens next.
            _write(lake, outbox)


def _read(lake: Lake) -> _Outbox:
    try:
        return msgspec.json.decode(lake.get(_OUTBOX), type=_Outbox)
    except FileNotFoundError:
        return {}
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise CorruptObject(
            f"{lake.local(_OUTBOX)} cannot be read.",
            kept="Nothing was sent.",
            hint="Remove the file; then all that still blocks a sweep is told once more.",
        ) from None


def _write(lake: Lake, outbox: _Outbox) -> None:
    lake.put(_OUTBOX, msgspec.json.encode(outbox))
