"""Where the readers of a message open a page."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote


def page_address(reports: Path, page: Path, pages_url: str | None) -> str:
    """Return a page's address below `pages_url`, the public address of the folder `reports`; without it, its path."""
    if pages_url is None:
        return str(page)
    return f"{pages_url}/{quote(page.relative_to(reports).as_posix())}"


def page_addresses(reports: Path, pages: Mapping[str, Path], pages_url: str | None) -> dict[str, str]:
    """Return the addresses of pages by the same keys; see `page_address`."""
    return {key: page_address(reports, page, pages_url) for key, page in pages.items()}
