"""Publishing: the audited sweep becomes part of the DuckDB file that analysts open."""

from pipeline.lake.ledger import LedgerEntry, published_sweeps, restore_entries
from pipeline.publish.publish import Published, publish, republish_all

__all__ = ["LedgerEntry", "Published", "publish", "published_sweeps", "republish_all", "restore_entries"]
