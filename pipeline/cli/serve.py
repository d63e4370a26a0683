"""`nightaudit serve`: reports and notebooks for a browser on this machine."""

import atexit
import os
import sys

from pipeline.cli.terminal import Terminal
from pipeline.domain.errors import SweepStopped
from pipeline.lake import Lake
from pipeline.process.signals import stoppable
from pipeline.report.serve import serve_reports
from pipeline.settings import read_settings


def serve(port: int) -> None:
    """Serve reports and notebooks on the loopback address until interrupted."""
    console = Terminal()

    def tell(addresses: list[str]) -> None:
        reports, *notebooks = addresses
        console.print(f"Reports: {reports}", soft_wrap=True)
        for address in notebooks:
            console.print(f"Notebook: {address}", soft_wrap=True)
        console.print("Each address contains a token that opens these pages. Press Ctrl-C to stop.", style="dim")

    try:
        # Loading the notebooks' server takes some seconds.
        Terminal(stderr=True).print("Starting the server of reports and notebooks …", style="dim")
        with stoppable("Reports and notebooks are no longer served.", "nightaudit serve"):
            serve_reports(Lake(read_settings().lake), port, tell)
    except SweepStopped as stopped:
        atexit.register(_end_at_once, stopped.exit_code)
        raise


def _end_at_once(exit_code: int) -> None:
    """End the process before its interpreter ends: a library in which a notebook still runs would abort it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)
