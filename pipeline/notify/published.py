"""A message to downstream jobs, once a night: where the published night and its changes are.

It is sent after the night is published. One that does not arrive is sent again after the next night.
"""

import logging
from collections.abc import Sequence
from datetime import date
from functools import partial

from pipeline.lake import Lake
from pipeline.lake.raw import read_manifest
from pipeline.lake.simulated import SIMULATED
from pipeline.notify.outbox import Outbox, Outgoing
from pipeline.notify.ways import Tell

logger = logging.getLogger(__name__)

_OUTBOX = "notify/published.json"


def tell_published(lake: Lake, nights: Sequence[tuple[str, date]], tell: Tell) -> bool:
    """Send the messages of published nights (sweep id and day, oldest first) not sent yet; return whether all arrived.

    Of nights earlier than the first message, only the latest is sent. A message that does not arrive is only a warning.
    The caller holds the lake's writer lock.
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
    return why is None


def _text(lake: Lake, sweep_id: str) -> str:
    changes = lake.local(lake.table_file("offer_change", sweep_id, "x")).parent
    if lake.copy is None:
        where = f"published: {lake.published_file.as_uri()}\nchanges: {changes.as_uri()}/"
    else:
        # The store's objects have other names, and other machines do not see this one's copy.
        published, changes = lake.published_file.relative_to(lake.root), changes.relative_to(lake.root)
        where = f"lake: {lake.address}\npublished: {published.as_posix()}\nchanges: {changes.as_posix()}/"
    note = f"\n{SIMULATED}" if read_manifest(lake, sweep_id).is_simulated else ""
    return f"sweep: {sweep_id}\n{where}{note}"
