"""The loaded property map, without importing the readers of users' files, as every sweep needs it."""

import pyarrow.parquet as pq

from pipeline.domain.tables import PROPERTY_MAP
from pipeline.lake import Lake
from pipeline.lake.checksums import refuse_damaged
from pipeline.lake.delta import committed_files


def unbranded_ids(lake: Lake) -> dict[int, int]:
    """Return the unbranded id of each branded property, by the property map that was loaded last."""
    files = committed_files(lake, PROPERTY_MAP)
    if not files:
        return {}
    refuse_damaged(lake.root, files)
    pairs = pq.read_table(files, columns=["input_id", "branded_id", "unbranded_id"], partitioning=None).to_pylist()
    newest = max((pair["input_id"] for pair in pairs), default=None)
    return {pair["branded_id"]: pair["unbranded_id"] for pair in pairs if pair["input_id"] == newest}
