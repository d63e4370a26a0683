"""Where the readers of a message open a page."""

from pathlib import Path
from urllib.parse import quote


def page_address(reports: Path, page: Path, pages_url: str | None) -> str:
    """Return a page's address below `pages_url`, the public address of the folder `reports`; without it, its path."""
    if pages_url is None:
        return str(page)
    return f"{pages_url}/{quote(page.relative_to(reports).as_posix())}"
