"""What the loaded property map says, without what reads the files of users: each sweep asks, and few have a map."""

from __future__ import annotations

import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.domain.tables import PROPERTY_MAP
from pipeline.lake import Lake
from pipeline.lake.delta import committed_files


def unbranded_ids(lake: Lake) -> dict[int, int]:
    """Return the unbranded id of each branded property, by the property map that was loaded last."""
    files = committed_files(lake, PROPERTY_MAP)
    if not files:
        return {}
    pairs = pq.read_table(files, columns=["input_id", "branded_id", "unbranded_id"], partitioning=None)
    newest = pairs.filter(pc.equal(pairs["input_id"], pc.max(pairs["input_id"])))
    return dict(zip(newest["branded_id"].to_pylist(), newest["unbranded_id"].to_pylist(), strict=True))
