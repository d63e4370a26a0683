"""Publishing: the audited sweep becomes part of the DuckDB file that analysts open."""

from pipeline.publish.ledger import LedgerEntry, published_sweeps, restore_entries
from pipeline.publish.publish import Published, publish, publish_anew

__all__ = ["LedgerEntry", "Published", "publish", "publish_anew", "published_sweeps", "restore_entries"]
