"""The sections of a property's page: its cases, prices night by night, parity, floors and promotions."""

from dataclasses import dataclass
from datetime import date

import polars as pl
from markupsafe import Markup

from pipeline.domain.quantities import counted
from pipeline.report.page import Column, Section, named, percent, shown, whole
from pipeline.report.price_lines import key, price_lines
from pipeline.report.property_problems import cases_section, rules_section

# Check-ins with a chart, and markets with a line.
_CHARTS, _MARKETS = 6, 6
# Markets named where several are equally far off.
_TIES = 3


@dataclass(frozen=True, slots=True)
class OfProperty:
    """The data of one property: rows of the queries in `property_pages`, open problems, and number of offers."""

    prices: pl.DataFrame
    parity: pl.DataFrame
    floors: pl.DataFrame
    promotions: pl.DataFrame
    rules: pl.DataFrame
    cells: pl.DataFrame
    problems: pl.DataFrame
    offers: int

    @property
    def cases(self) -> int:
        """Number of open cases."""
        return int(self.problems["cases"].sum()) if self.problems.height else 0

    @property
    def has_currencies(self) -> bool:
        """Whether a market has offers in several currencies. A case counts such an offer once, the page each time."""
        return bool(self.promotions.select("market", "currency").unique()["market"].is_duplicated().any())


def tiles_of(known: OfProperty) -> list[tuple[str, str]]:
    """Return the numbers at the top of the page with their labels."""
    floors, parity = known.floors, known.parity
    # One that was acknowledged in some markets has two lines.
    problems = known.problems["rule"].n_unique() if known.problems.height else 0
    lose, win, pairs = (int(parity[name].sum()) for name in ("lose", "win", "pairs"))
    in_cases = f" ({known.cases:,} cases)" if known.cases > problems else ""
    return [
        (shown(problems, 0), f"open {'problem' if problems == 1 else 'problems'}{in_cases}"),
        (shown(known.offers, 0), "offers on sale" + (", one in two currencies twice" if known.has_currencies else "")),
        (
            shown(lose + win, 0),
            f"of {counted(pairs, 'pair')} differ from the reference market ({lose:,} dearer, {win:,} cheaper)"
            if pairs
            else "pairs of markets could be compared",
        ),
        (
            shown(int(floors["above_total"].sum()), 0),
            f"floors at or above the total, of {int(floors['with_floor'].sum()):,}",
        ),
        (shown(int(known.promotions["promoted"].sum()), 0), "offers promoted"),
    ]


def sections_of(known: OfProperty) -> list[Section]:
    """Return the sections of the page in their order, some of them perhaps empty."""
    rules, problems = [rules_section(known.rules, is_on_sale=known.offers > 0)], known.problems
    return [
        # That nothing was found is what there is to say first; beside problems it can wait.
        *([cases_section(problems)] if problems.height else rules),
        _prices(known.prices),
        _parity(known.parity),
        _floors(known.floors),
        _promotions(known.promotions),
        *(rules if problems.height else []),
        _on_sale(known.cells),
    ]


def _on_sale(rows: pl.DataFrame) -> Section:
    """Return what came of the requests, by market."""
    asked, offered = int(rows["cells"].sum()), int(rows.filter(pl.col("status") == "offered")["cells"].sum())
    return Section(
        "on_sale",
        f"{offered:,} of {counted(asked, 'cell')} {'is' if offered == 1 else 'are'} on sale",
        "The latest answer about each cell (a stay and party in one market, by product and currency) whose stay is "
        "still ahead. Absent means that the answer does not name the property, which is not the same as sold out.",
        rows.with_columns(pl.col("answered_at").dt.date().alias("answered_on")),
        columns=[
            Column("market", "Market"),
            Column("status", "Answer"),
            Column("cells", "Cells", digits=0),
            Column("answered_on", "Last answered"),
        ],
        why_empty="No stay that is still ahead was requested. The next night that requests one fills this section.",
        source="mart.cell_latest",
    )


def _prices(path: pl.DataFrame) -> Section:
    charts: list[Markup] = []
    markets = path.group_by("market").len().sort(["len", "market"], descending=[True, False])["market"]
    places = {market: place for place, market in enumerate(markets.head(_MARKETS).sort().to_list())}
    nights: list[date] = path["snapshot_date"].unique().sort().to_list()
    if nights:
        nights = pl.date_range(nights[0], nights[-1], eager=True).to_list()
    by_stay = path.filter(pl.col("market").is_in(list(places))).partition_by(
        ["check_in", "nights", "party"], maintain_order=True
    )
    for stay in by_stay[:_CHARTS]:
        first = stay.row(0, named=True)
        paths: dict[str, list[tuple[date, float]]] = {market: [] for market in places}
        for market, night, total in stay.select("market", "snapshot_date", "total").iter_rows():
            paths[market].append((night, total))
        caption = f"Check-in {first['check_in']}, {counted(first['nights'], 'night')}, party {first['party']}"
        charts.append(price_lines({name: path for name, path in paths.items() if path}, places, nights, caption))
    currency = path["currency"][0] if path.height else ""
    left = f" The first {_CHARTS} of {len(by_stay)} stays are drawn." if len(by_stay) > _CHARTS else ""
    return Section(
        "prices",
        f"The cheapest price of each stay, night by night, in {currency}" if charts else "No price has been seen",
        "The lowest hotel-only total in list answers, by market. Where lines coincide, thinner ones are drawn on top. "
        f"A line breaks where the property was not on sale.{left}",
        path,
        [key(places), *charts] if charts else (),
        why_empty="No list answer had a hotel-only price for a stay that is still ahead. The first one fills this.",
        source="mart.offer_history",
    )


def _parity(rows: pl.DataFrame) -> Section:
    reference = rows["reference_market"][0] if rows.height else ""
    lose, win, pairs = (int(rows[name].sum()) for name in ("lose", "win", "pairs"))
    furthest = _furthest(rows)
    where = f"; furthest: {furthest} (median of a check-in)" if (lose or win) and furthest else ""
    return Section(
        "parity",
        f"Of {counted(pairs, 'offer')}, {lose:,} {'is' if lose == 1 else 'are'} dearer than in {reference}, "
        f"{win:,} cheaper{where}"
        if rows.height
        else "No market could be compared",
        "The same room, board, policy, stay and party in both markets, answered in one sweep. Prices in two "
        "currencies are compared at the reference rate, and count as equal if the difference is too small for such a "
        "rate to show. Above 0: dearer than in the reference market.",
        rows,
        columns=[
            *named(market="Market", check_in="Check-in", currency="Currency"),
            *whole(pairs="Compared", win="Cheaper", meet="Equal", lose="Dearer"),
            Column("median_gap_pct", "Median gap", "%", 1, is_change=True),
        ],
        why_empty="No offer of this property is on sale both in the reference market and in another one. The first "
        "night on which one is fills this section.",
        source="mart.market_parity",
    )


def _furthest(rows: pl.DataFrame) -> str:
    """Return the largest gap of a market and check-in as it is printed, with all markets that have it; empty: 0."""
    gaps = rows.drop_nulls("median_gap_pct").select("market", "median_gap_pct").unique().sort("market")
    printed = [(percent(gap, is_change=True), market) for market, gap in gaps.iter_rows()]
    largest = percent(max((abs(gap) for gap in gaps["median_gap_pct"]), default=0))
    if largest == percent(0):
        return ""
    markets: dict[str, list[str]] = {}
    for gap, market in printed:
        if gap.lstrip("+−") == largest and market not in markets.setdefault(gap, []):
            markets[gap].append(market)
    return " and ".join(
        f"{gap} in {', '.join(there) if len(there) <= _TIES else f'{len(there)} markets'}"
        for gap, there in markets.items()
    )


def _floors(rows: pl.DataFrame) -> Section:
    above, stated = int(rows["above_total"].sum()), int(rows["with_floor"].sum())
    return Section(
        "floors",
        f"{above:,} of {counted(stated, 'floor')} {'lies' if above == 1 else 'lie'} at or above the total"
        if stated
        else "No floor is stated",
        "The floor is the lowest price at which a hotel-only offer may be sold. Closest floor: the mark-up on the "
        "total at which it is reached; below 0, the total is above the floor.",
        rows,
        columns=[
            Column("check_in", "Check-in"),
            Column("nights", "Nights", digits=0),
            Column("market", "Market"),
            Column("cheapest", "Cheapest total", digits=2, currency="currency"),
            *whole(offers="Offers", with_floor="With a floor", above_total="Floor at or above total"),
            Column("closest_pct", "Closest floor", "%", 1, is_change=True),
        ],
        why_empty="No hotel-only offer of this property is on sale. The first that is fills this section.",
        source="mart.floor_headroom",
    )


def _promotions(rows: pl.DataFrame) -> Section:
    promoted, never = int(rows["promoted"].sum()), int(rows["never_charged"].sum())
    return Section(
        "promotions",
        f"{counted(promoted, 'offer is', 'offers are')} promoted"
        + (
            f"; {counted(never, 'struck-through price was', 'struck-through prices were')} apparently never charged"
            if never
            else ""
        )
        if promoted
        else f"Nothing is promoted: none of {counted(int(rows['offers'].sum()), 'offer')} has a struck-through price"
        if rows.height
        else "Nothing is promoted",
        "List offers below their price before promotions, and the open findings about that price: never charged "
        "before, above the lowest total seen before, or promoted without an end. They are indicators, not proof.",
        rows,
        columns=[
            *named(market="Market", product_type="Product", currency="Currency"),
            *whole(offers="Offers", promoted="Promoted"),
            Column("depth_pct", "Median discount", "%", 1),
            *whole(never_charged="Never charged", above_lowest="Above the earlier lowest", evergreen="Without an end"),
        ],
        why_empty="No offer of this property is on sale in a list answer. The first one fills this section.",
        source="mart.offer_latest",
    )
