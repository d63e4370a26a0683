"""Publishing: the audited sweep becomes part of the DuckDB file that analysts open."""

from pipeline.publish.ledger import LedgerEntry, published_sweeps
from pipeline.publish.publish import Published, publish

__all__ = ["LedgerEntry", "Published", "publish", "published_sweeps"]
