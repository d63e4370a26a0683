"""Prepares a process that normalises segments.

It imports only what normalising needs. A fork server holds these modules once, and workers share its memory.
"""

import gc

# For the fork server: what it imports is available in each worker.
from pipeline.normalise import segment
from pipeline.process.child import follow_parent
from pipeline.process.pandasless import keep_pandas_out

__all__ = ["prepare", "segment"]


def prepare() -> None:
    """Make this process a worker of its parent."""
    follow_parent()
    keep_pandas_out()
    # Imported modules stay; a garbage collector that visits them would unshare their memory.
    gc.freeze()
