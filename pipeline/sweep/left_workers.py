"""Workers of a cluster that may still send searches of a sweep though the run that gave them out has ended.

They finish the shards that they have begun, so a later run sends these last, and none of their searches once they have
landed.
"""

import asyncio

from pipeline.domain.shards import Shard
from pipeline.lake import Lake


def may_have_workers(lake: Lake, sweep_id: str) -> bool:
    """Return whether a run of this sweep has given searches to workers."""
    return lake.exists(lake.spread_path(sweep_id))


def note_workers(lake: Lake, sweep_id: str) -> None:
    """Record that workers are given searches, before they are: a later run on another machine must know of them."""
    if lake.put_new(lake.spread_path(sweep_id), b"{}"):
        lake.commit()


async def has_landed(lake: Lake, sweep_id: str, shard: Shard) -> bool:
    """Return whether a shard has landed, which may have been done by a worker."""
    path = lake.shard_path(sweep_id, shard.name)
    is_here = lake.exists(path)
    if is_here or lake.copy is None or not await asyncio.to_thread(lake.copy.handed.exists, path):
        return is_here
    await asyncio.to_thread(lake.receive, sweep_id, [path])
    return True
