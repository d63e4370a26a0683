"""Answers about opaque offers: asked and answered under the unbranded id, kept under the cell's own.

The supplier's document wants the unbranded id in a single search. The cell stays that of the property that the plan
names, so that its list and its detail answer are about the same offers; the id that was sent is kept with the search.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from pipeline.normalise.read_answer import Reading
from pipeline.normalise.request import Asked


def asked_for(asked: Asked, own_property_id: int | None) -> Asked:
    """Return what was asked as the plan has it, where one property was asked for under the id of another."""
    if own_property_id is None or asked.property_ids == (own_property_id,):
        return asked
    (sent,) = asked.property_ids
    return replace(asked, property_ids=(own_property_id,), sent_property_id=sent)


def sent_ids(asked: Asked) -> frozenset[int]:
    """Return the property ids that the request named."""
    return frozenset(asked.property_ids if asked.sent_property_id is None else (asked.sent_property_id,))


def told_of_own(reading: Reading, asked: Asked) -> Reading:
    """Return the reading with the cell's own property in place of the one that was sent."""
    sent = asked.sent_property_id
    if sent is None:
        return reading
    (own,) = asked.property_ids

    def own_for(property_id: int) -> int:
        return own if property_id == sent else property_id

    if reading.offers is not None:
        answered = reading.offers.property_id.to_pylist()
        reading.offers.property_id = pa.array(map(own_for, answered), pa.int64())
    reading.returned = {own_for(property_id): offers for property_id, offers in reading.returned.items()}
    reading.unreadable = frozenset(map(own_for, reading.unreadable))
    reading.refusals = [
        replace(refusal, property_id=own) if refusal.property_id == sent else refusal for refusal in reading.refusals
    ]
    if reading.content is not None and reading.content.property_id == sent:
        reading.content = replace(reading.content, property_id=own)
    return reading
