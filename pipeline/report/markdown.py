"""Written reports as Markdown, for tools that show it beside a run."""

import re
from base64 import b64encode
from collections.abc import Sequence

from pipeline.domain.texts import in_markdown
from pipeline.report.page_files import Written
from pipeline.report.render import day_colours

_SVG = re.compile(r"<svg .*?</svg>", re.DOTALL)


def as_markdown(written: Sequence[Written]) -> str:
    """Return the first report's summary and charts, and links to all pages."""
    lines = []
    for first in written[:1]:
        lines += [f"# {in_markdown(first.title)}", "", *(["**Simulated data.**", ""] if first.is_simulated else [])]
        lines += [f"- {in_markdown(point)}" for point in first.points]
        for title, chart in first.charts:
            lines += ["", f"![{in_markdown(title)}]({_as_image(chart)})", "", f"*{in_markdown(title)}*"]
    lines += ["", "## Pages", ""]
    lines += [f"- {page.name}: [{in_markdown(page.title)}]({page.file.resolve().as_uri()})" for page in written]
    return "\n".join(lines)


def _as_image(chart: str) -> str:
    """Return a page's chart as a self-contained picture on white."""
    drawn = _SVG.search(chart)
    assert drawn is not None  # noqa: S101 - each chart is one
    tag, _, inside = drawn[0].partition(">")
    colours = f"<style>{day_colours()} svg {{ background: #fff }}</style>"
    return "data:image/svg+xml;base64," + b64encode(f"{tag}>{colours}{inside}".encode()).decode()
