"""What people see, in a real browser: charts follow the controls, nothing is asked of the network, and no page of
another origin reads any of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from free_port import free_port
from playwright.sync_api import expect, sync_playwright

from pipeline.lake import Lake
from pipeline.report.page_files import REPORTS
from pipeline.report.write import write_reports

ROOT = Path(__file__).parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PHONE = {"width": 390, "height": 800}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def lake(nights, tmp_path_factory):
    """A copy of the two nights, with their reports."""
    copy = Lake(str(tmp_path_factory.mktemp("served") / "lake"))
    shutil.copytree(nights.both.root, copy.root)
    write_reports(copy)
    return copy


@pytest.fixture(scope="module")
def printed(lake):
    """The addresses that `nightaudit serve` prints, which runs as people start it and ends as they end it."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", "serve", "--port", str(port)],
        cwd=ROOT,
        env=os.environ | {"NIGHTAUDIT_LAKE": str(lake.root)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        reported = []
        while "Ctrl-C" not in (line := process.stdout.readline()):
            assert line, "nightaudit serve has ended"
            reported.append(line.split()[-1])
        _wait_for(f"http://127.0.0.1:{port}", process)
        yield reported
        process.send_signal(signal.SIGINT)
        process.wait(20)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def address(printed):
    return printed[0].partition("/reports/")[0]


def _wait_for(address, process):
    while process.poll() is None:
        try:
            httpx.get(address)
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("nightaudit serve has ended")


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        # Without its sandbox, as that does not start as root, which containers are run as.
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def page(browser, address, printed):
    """A page that must log no error, and call this server only; its browser has opened the printed address."""
    opened = browser.new_page(viewport={"width": 1000, "height": 1400})
    opened.goto(printed[0])
    wrong = []
    own = (address, address.replace("http:", "ws:"), "data:", "blob:")
    opened.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("request", lambda request: None if request.url.startswith(own) else wrong.append(request.url))
    opened.on("response", lambda answer: wrong.append(answer.url) if answer.status >= 400 else None)
    yield opened
    opened.close()
    assert wrong == []


def choose(label, option):
    return lambda page: page.get_by_label(label).first.select_option(label=option)


def another(label):
    """Choose the second option: the first one is shown at the beginning."""
    return lambda page: page.get_by_label(label).first.select_option(index=1)


def furthest(page):
    page.get_by_role("slider").focus()
    page.keyboard.press("End")


def without_floors(page):
    page.get_by_role("checkbox", name="Draw floors").first.click()


# What is changed in each notebook.
CHANGED = [
    ("booking_window", furthest),
    ("parity_explorer", choose("Match grade", "cheapest only")),
    ("parity_explorer", furthest),
    ("price_trends", another("Market")),
    ("price_trends", choose("Room", "all rooms")),
    ("price_trends", without_floors),
    ("promotion_honesty", choose("Verdict", "not enough history")),
    ("promotion_honesty", another("Market")),
]


@pytest.mark.parametrize(("notebook", "change"), CHANGED)
def test_a_chart_follows_its_control(page, address, notebook, change):
    page.goto(f"{address}/notebooks/{notebook}/")
    chart = page.locator("canvas.marks, svg.marks").first
    expect(chart).to_be_visible(timeout=30_000)
    drawn = _settled(page, chart)
    change(page)
    for _ in range(100):
        if chart.is_visible() and _picture(chart) != drawn:
            break
        page.wait_for_timeout(100)
    assert _picture(chart) != drawn
    assert page.get_by_text("Traceback").count() == 0


def test_all_charts_follow_a_brush_over_lead_times_and_a_click_on_a_market(page, address):
    page.goto(f"{address}/notebooks/offer_explorer/")
    charts = page.locator("canvas.marks, svg.marks")
    expect(charts).to_have_count(4, timeout=30_000)
    of_days, of_markets, *_ = _all_settled(page, charts)
    # The later of two stays lies in the right half.
    box = charts.first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.99, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    query = page.locator("code").filter(has_text="FROM mart.offer_latest")
    expect(query).to_contain_text("lead_days BETWEEN 69 AND 69", timeout=30_000)
    brushed = _all_settled(page, charts)
    assert brushed[1] != of_markets
    box = charts.nth(1).bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.4, box["y"] + 35)
    expect(query).to_contain_text("market IN", timeout=30_000)
    expect(query).to_contain_text("lead_days BETWEEN 69 AND 69")
    assert _all_settled(page, charts)[0] not in {of_days, brushed[0]}
    assert page.get_by_text("Traceback").count() == 0


def test_lead_times_markets_and_boards_are_selected_by_keyboard_alone(page, address):
    page.goto(f"{address}/notebooks/offer_explorer/")
    charts = page.locator("canvas.marks, svg.marks")
    expect(charts).to_have_count(4, timeout=30_000)
    drawn = _all_settled(page, charts)
    _by_tab(page, page.get_by_role("slider").first)
    # The earlier stay is left out.
    page.keyboard.press("ArrowRight")
    query = page.locator("code").filter(has_text="FROM mart.offer_latest")
    expect(query).to_contain_text("lead_days BETWEEN 4 AND 69", timeout=30_000)
    brushed = _all_settled(page, charts)
    assert [one == other for one, other in zip(brushed, drawn, strict=True)][1:] == [False] * 3
    # The slider keeps the focus.
    page.keyboard.press("ArrowLeft")
    expect(query).not_to_contain_text("lead_days BETWEEN", timeout=30_000)
    for label, typed, condition in (
        ("Markets", "DE", "market IN ('DE')"),
        ("Boards", "room", "board_family IN ('room only')"),
    ):
        _by_tab(page, page.get_by_label(label).first)
        page.keyboard.press("Enter")
        page.keyboard.type(typed)
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")
        expect(query).to_contain_text(condition, timeout=30_000)
    assert page.get_by_text("Traceback").count() == 0


def _by_tab(page, wanted):
    """Move the focus forward until it is on an element."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if wanted.evaluate("one => one.matches(':focus')"):
            return
    raise AssertionError("The Tab key does not lead there.")


def _all_settled(page, charts):
    return [_settled(page, charts.nth(number)) for number in range(charts.count())]


def _picture(chart):
    return chart.evaluate("chart => chart.toDataURL ? chart.toDataURL() : chart.outerHTML")


def _settled(page, chart):
    """Return the chart once it is drawn: it is the same twice."""
    before, now = None, _picture(chart)
    while before != now:
        page.wait_for_timeout(300)
        before, now = now, _picture(chart)
    return now


@pytest.mark.parametrize("report", ["all nights", *REPORTS])
def test_a_report_is_whole_on_a_phone(page, address, lake, report):
    sweep_id = max(folder.name for folder in (lake.root / "reports").iterdir() if folder.is_dir())
    file = {"all nights": "index.html", "digest": f"{sweep_id}/index.html"}.get(report, f"{sweep_id}/{report}.html")
    page.set_viewport_size(PHONE)
    page.goto(f"{address}/reports/{file}")
    assert page.locator("h1").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize(
    "notebook", ["offer_explorer", "price_trends", "parity_explorer", "promotion_honesty", "booking_window"]
)
def test_the_charts_of_a_notebook_are_whole_on_a_phone(page, address, notebook):
    page.set_viewport_size(PHONE)
    page.goto(f"{address}/notebooks/{notebook}/")
    charts = page.locator("canvas.marks, svg.marks")
    expect(charts.first).to_be_visible(timeout=30_000)
    _all_settled(page, charts)
    boxes = [charts.nth(number).bounding_box() for number in range(charts.count())]
    assert [box["x"] + box["width"] <= PHONE["width"] for box in boxes] == [True] * len(boxes)


HOSTILE = """<!doctype html><title>waiting</title><body><script>
const target = "%(target)s", socket = target.replace("http:", "ws:"), got = [];
const attempts = [
  ...["cors", "no-cors"].map(mode => () => fetch(target + "/reports/", {mode, credentials: "include"})
    .then(answer => answer.text()).then(text => { if (text) got.push(mode + " " + text.slice(0, 80)); })),
  () => fetch(target + "/notebooks/%(notebook)s/api/kernel/instantiate", {method: "POST", body: "{}",
    headers: {"content-type": "text/plain"}}).then(answer => answer.text()).then(text => got.push("post " + text)),
  () => new Promise(done => {
    const ws = new WebSocket(socket + "/notebooks/%(notebook)s/ws?session_id=stolen");
    ws.onopen = () => got.push("socket open");
    ws.onmessage = message => { got.push("socket " + String(message.data).slice(0, 80)); done(); };
    ws.onerror = ws.onclose = done;
  }),
  ...["script", "img", "iframe"].map(kind => () => new Promise(done => {
    const part = document.createElement(kind);
    part.src = target + "/reports/";
    part.onerror = done;
    part.onload = () => { if (kind !== "iframe") got.push(kind + " loaded"); done(); };
    document.body.append(part);
  })),
];
Promise.all(attempts.map(attempt => attempt().catch(() => {}))).then(() => {
  document.title = "done"; window.got = got;
});
</script>"""


class _HostilePage(BaseHTTPRequestHandler):
    text = ""

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(self.text.encode())

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("site", ["127.0.0.1", "localhost", "attacker.localhost"])
def test_a_hostile_page_reads_nothing_although_its_visitor_has_the_reports_open(browser, printed, address, site):
    notebook = printed[1].partition("/notebooks/")[2].partition("/")[0]
    handler = type("Handler", (_HostilePage,), {"text": HOSTILE % {"target": address, "notebook": notebook}})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            visitor = browser.new_context()
            visitor.new_page().goto(printed[0])
            hostile = visitor.new_page()
            hostile.goto(f"http://{site}:{server.server_port}/")
            hostile.wait_for_function("document.title === 'done'")
            got, framed = hostile.evaluate("window.got"), [frame.content() for frame in hostile.frames[1:]]
            visitor.close()
        finally:
            server.shutdown()
            thread.join()
    assert got == []
    assert not [text for text in framed if "Reports of all nights" in text]


def test_a_name_that_leads_to_this_machine_opens_nothing(browser, printed):
    rebound = browser.new_page()
    answer = rebound.goto(printed[0].replace("127.0.0.1", "attacker.localhost"))
    assert answer.status == 400
    rebound.close()
