"""A message to downstream jobs, once a night: where the published night and its changes are.

It is sent after the night is published. Whom it does not reach gets it after the next night, with that night's own.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import date
from functools import partial

from pipeline.lake import Lake
from pipeline.notify.outbox import Outbox, Outgoing
from pipeline.notify.ways import Tell

logger = logging.getLogger(__name__)

_OUTBOX = "notify/published.json"


def tell_published(lake: Lake, nights: Sequence[tuple[str, date]], tell: Tell) -> None:
    """Send of each published night (sweep id and day, oldest first) what was not sent yet.

    Nights of before the first message are not sent: only the latest. A message that does not arrive is a warning, for
    the night is published. The caller holds the lake's writer lock.
    """
    outbox: Outbox[dict[str, bool]] = Outbox(lake, _OUTBOX, dict[str, bool], {})
    if not outbox.held:
        outbox.held = {sweep_id: True for sweep_id, _ in nights[:-1]}
    for sweep_id, _ in nights:
        outbox.held.setdefault(sweep_id, False)
    outbox.save()
    waiting = [
        Outgoing(f"nightaudit: published {day}", _text(lake, sweep_id), partial(outbox.held.update, {sweep_id: True}))
        for sweep_id, day in nights
        if not outbox.held[sweep_id]
    ]
    if why := outbox.send(tell, waiting):
        logger.warning("The published night could not be announced: %s. This is retried with the next night.", why)


def _text(lake: Lake, sweep_id: str) -> str:
    changes = lake.local(lake.table_file("offer_change", sweep_id, "x")).parent
    return "\n".join(
        [
            f"sweep: {sweep_id}",
            f"published: {lake.published_file.as_uri()}",
            f"changes: {changes.as_uri()}/",
        ]
    )
