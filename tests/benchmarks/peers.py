"""Where dlt works while it is measured: a folder of its own, without telemetry."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile


def dlt_workspace() -> str:
    """Go to a fresh folder, before dlt is imported, and return it; it goes when this process ends."""
    workspace = tempfile.mkdtemp(prefix="bench-")
    atexit.register(shutil.rmtree, workspace, ignore_errors=True)
    os.environ.update(RUNTIME__DLTHUB_TELEMETRY="false", DLT_DATA_DIR=f"{workspace}/data", RUNTIME__LOG_LEVEL="ERROR")
    os.chdir(workspace)
    return workspace
