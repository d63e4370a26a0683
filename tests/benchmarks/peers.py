"""Where dlt works while it is measured: a folder of its own, and nothing told to anybody."""

from __future__ import annotations

import os
import tempfile


def dlt_workspace() -> str:
    """Go to a fresh folder, before dlt is imported, and return it."""
    workspace = tempfile.mkdtemp()
    os.environ.update(RUNTIME__DLTHUB_TELEMETRY="false", DLT_DATA_DIR=f"{workspace}/data", RUNTIME__LOG_LEVEL="ERROR")
    os.chdir(workspace)
    return workspace
