"""Every kind of page in a real browser: axe-core finds nothing that keeps people out, and no page is wider than its
screen."""

from __future__ import annotations

import shutil

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from pipeline.lake import Lake
from pipeline.report.write import write_dictionary

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

# One page of each kind, by its place below the reports; `*` is the last night, or any of its cases and properties.
KINDS = {
    "all nights": "index.html",
    "digest": "*/index.html",
    "parity": "*/parity.html",
    "promotions": "*/promotions.html",
    "availability": "*/availability.html",
    "properties": "*/properties/index.html",
    "a property": "*/properties/[0-9]*.html",
    "a case": "*/cases/case-*.html",
    "quality": "*/quality.html",
    "dictionary": "dictionary.html",
}
SCREENS = {
    "a desk": (1280, "light"),
    "a desk in the dark": (1280, "dark"),
    "a phone": (390, "light"),
    "a phone in the dark": (390, "dark"),
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def reports(two_nights, tmp_path_factory):
    """The pages of the demo, and the dictionary beside them."""
    copy = Lake(str(tmp_path_factory.mktemp("pages") / "lake"))
    shutil.copytree(two_nights[0].lake, copy.root)
    write_dictionary(copy)
    return copy.root / "reports"


@pytest.fixture(scope="module", params=SCREENS.values(), ids=SCREENS)
def screen(request):
    width, scheme = request.param
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        browser.close()


@pytest.mark.parametrize("place", KINDS.values(), ids=KINDS)
def test_a_page_keeps_no_one_out_and_fits_its_screen(screen, reports, place):
    screen.goto(max(reports.glob(place)).as_uri())
    # What can be opened counts as well.
    screen.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    found = Axe().run(screen)
    assert found.violations_count == 0, found.generate_report()
    assert screen.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
