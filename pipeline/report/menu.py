"""The menu of a night's pages."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pipeline.lake import write_in_place
from pipeline.report.read import PROPERTY_PAGES
from pipeline.report.scope import Scope
from pipeline.report.script import TABLES, TABLES_SOURCE

LABELS: Final[Mapping[str, str]] = {
    "digest": "Nightly digest",
    "parity": "Parity",
    "promotions": "Promotions",
    "availability": "Availability and prices",
}
_FRONT_PAGE = "digest"
# The list of the pages of properties.
_PROPERTIES = ("Properties", f"{PROPERTY_PAGES}/index.html")
# The page that the audit has written.
_QUALITY = ("Quality", "quality.html")
_HERE = ' aria-current="page"'


def pages_of(root: Path, sweep_id: str) -> list[tuple[str, str]]:
    """Return the labels and files of a night's pages, the filtered ones last."""
    folder = root / sweep_id
    known = [(label, file_name(name)) for name, label in LABELS.items()] + [_PROPERTIES, _QUALITY]
    limited = [
        (f"{label} ({', '.join(part.replace('-', ' ', 1) for part in file.stem.split('--')[1:])})", file.name)
        for name, label in LABELS.items()
        for file in sorted(folder.glob(f"{name}--*.html"))
    ]
    return [(label, f"{sweep_id}/{file}") for label, file in known + limited if (folder / file).exists()]


def file_name(name: str, suffix: str = "") -> str:
    """Return the file name of a report's page; `suffix` names its filters."""
    return f"{'index' if name == _FRONT_PAGE and not suffix else name}{suffix}.html"


def links_of(folder: Path, wanted: Sequence[str], scope: Scope = Scope()) -> list[tuple[str, str, str]]:
    """Return the menu of a page of `scope`: the reports that exist, or are being written (`wanted`).

    A report that does not exist with these filters is the complete one, to which the script takes a city along.
    """
    along = {file_name(name, scope.suffix) for name in wanted}
    if wanted and not scope.words:
        # Complete reports include pages of properties and a list of them.
        along.add(_PROPERTIES[1])

    def there(file: str) -> bool:
        return file in along or (folder / file).exists()

    names = [(name, label, file_name(name, scope.suffix), file_name(name)) for name, label in LABELS.items()]
    pages = [(name, label, own if there(own) else complete) for name, label, own, complete in names] + [
        ("properties", *_PROPERTIES),
        ("quality", *_QUALITY),
    ]
    return [(name, label, file) for name, label, file in pages if there(file)]


def link_quality_page(folder: Path, links: Sequence[tuple[str, str, str]]) -> None:
    """Add the menu to the quality page, which the audit wrote before there were reports.

    With it comes the script, so that its links keep a filter as those of other pages do.
    """
    page = folder / _QUALITY[1]
    if not page.exists():
        return
    menu = "\n".join(f'<a href="{href}"{_HERE if href == page.name else ""}>{label}</a>' for _, label, href in links)
    text = page.read_text(encoding="utf-8")
    start, end = text.find("<nav>"), text.find("</nav>")
    if 0 <= start < end:
        menu = f'<nav>\n<a href="../index.html">All nights</a>\n{menu}\n'
        write_in_place(page, _with_script(f"{text[:start]}{menu}{text[end:]}").encode())


_SCRIPT: Final = re.compile(r"<script>.*?</script>\n", re.DOTALL)
_IMAGES: Final = re.compile(r"img-src data:[^\"]*\"")


def _with_script(text: str) -> str:
    """Return a page with our script, once, permitted by its content security policy."""
    permitted = _IMAGES.sub(lambda _: f'img-src data:; script-src {TABLES_SOURCE}"', _SCRIPT.sub("", text), count=1)
    return permitted.replace("</body>", f"<script>{TABLES}</script>\n</body>")
