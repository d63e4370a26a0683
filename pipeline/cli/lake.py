"""`nightaudit lake`: the size of the lake, and its maintenance."""

import dataclasses
from collections.abc import Iterable, Sequence
from datetime import date, datetime

from rich.table import Table
from rich.text import Text

from pipeline.cli.terminal import Terminal, write_json_lines
from pipeline.lake import Lake
from pipeline.lake.inventory import Stock, inventory
from pipeline.night.care import Care, plan_care, take_care
from pipeline.process.signals import stoppable
from pipeline.settings import read_settings

_NIGHTS_SHOWN = 60


def show_lake(form: str, *, is_applied: bool, is_growth: bool) -> None:
    """Print the size of the lake and the maintenance that is due; do it if `is_applied`."""
    settings = read_settings()
    lake = Lake(settings.lake)
    lake.refuse_missing()
    if is_applied:
        with stoppable("No night was lost.", "nightaudit lake --apply"), lake.writing("lake maintenance"):
            care = take_care(settings, lake)
    else:
        care = plan_care(settings, lake)
    stocks = inventory(lake)
    if form == "json":
        _write_json(stocks, care, settings.clock())
        return
    console = Terminal()
    console.print(by_kind(stocks))
    console.print(by_night(stocks, settings.clock()))
    if is_growth:
        from pipeline.report.growth import draw_growth

        picture = draw_growth(stocks, lake.reports / "growth.svg", _NIGHTS_SHOWN)
        console.print(Text(f"Picture: {picture}"), soft_wrap=True)
    console.print(care_view(care, is_applied=is_applied))


def by_kind(stocks: Iterable[Stock]) -> Table:
    """Return files, bytes and rows by kind."""
    table = _table("what")
    sums: dict[str, list[int]] = {}
    for stock in stocks:
        _add(sums.setdefault(stock.kind, [0, 0, 0]), stock)
    total = [sum(counts[at] for counts in sums.values()) for at in range(3)]
    for kind, counts in [*sums.items(), ("all", total)]:
        table.add_row(kind, *(f"{count:,}" for count in counts))
    return table


def by_night(stocks: Iterable[Stock], now: datetime) -> Table:
    """Return files, bytes and rows of the latest nights."""
    table = _table("night", "age, days")
    sums: dict[date, list[int]] = {}
    for stock in stocks:
        if stock.night is not None:
            _add(sums.setdefault(stock.night, [0, 0, 0]), stock)
    for night in sorted(sums)[-_NIGHTS_SHOWN:]:
        table.add_row(f"{night}", f"{(now.date() - night).days:,}", *(f"{count:,}" for count in sums[night]))
    return table


def care_view(care: Sequence[Care], *, is_applied: bool) -> Table | Text:
    """Return the maintenance that is due or was done."""
    if not care:
        return Text("No maintenance is due.", style="green")
    table = Table("done" if is_applied else "to do", "where", "nights", "files", "bytes", header_style="bold")
    sums: dict[tuple[str, str], list[int]] = {}
    for item in care:
        counts = sums.setdefault((item.kind, item.where), [0, 0, 0])
        for at, count in enumerate((1, item.files, item.bytes)):
            counts[at] += count
    for (kind, where), counts in sums.items():
        table.add_row(kind, where, *(f"{count:,}" for count in counts))
    if not is_applied:
        table.caption = "Do it with: nightaudit lake --apply"
    return table


def _table(*names: str) -> Table:
    table = Table(*names, header_style="bold")
    for name in ("files", "bytes", "rows"):
        table.add_column(name, justify="right")
    return table


def _add(counts: list[int], stock: Stock) -> None:
    for at, count in enumerate((stock.files, stock.bytes, stock.rows)):
        counts[at] += count


def _write_json(stocks: Iterable[Stock], care: Iterable[Care], now: datetime) -> None:
    rows: list[dict[str, object]] = [
        {
            "is": "stock",
            **dataclasses.asdict(stock),
            "age_days": (now.date() - stock.night).days if stock.night else None,
        }
        for stock in stocks
    ]
    rows += [
        {"is": "care"} | {name: getattr(one, name) for name in ("kind", "where", "sweep_id", "files", "bytes")}
        for one in care
    ]
    write_json_lines(rows)
