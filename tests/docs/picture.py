"""Draw the README's picture, the top of a digest: `make picture`, with a demo in NIGHTAUDIT_LAKE."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PICTURE = Path(__file__).with_name("digest.png")
MOST_BYTES = 200_000


def draw(lake: Path) -> None:
    """Write the picture. Ends with a message if there is no digest, or no Chromium."""
    digests = sorted((lake / "reports").glob("*/index.html"))
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not digests or browser is None:
        sys.exit(f"It takes a demo in {lake} (nightaudit demo) and Chromium.")
    command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += ["--window-size=1100,765", f"--screenshot={PICTURE}", digests[-1].resolve().as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    if (size := PICTURE.stat().st_size) > MOST_BYTES:
        sys.exit(f"{PICTURE} has {size:,} bytes: make the window smaller.")


if __name__ == "__main__":
    draw(Path(os.environ.get("NIGHTAUDIT_LAKE", "lake")))
