"""The processes of the demo: publishing goes first."""

from __future__ import annotations

import os

from pipeline.demo.beside import behind, process_beside


def test_what_is_started_beside_publishing_gives_it_the_processor():
    with process_beside() as publisher, behind(publisher), process_beside() as auditor:
        first, later = (process.submit(os.getpriority, os.PRIO_PROCESS, 0) for process in (publisher, auditor))
        assert first.result() < later.result()
