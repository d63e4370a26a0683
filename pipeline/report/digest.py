"""The nightly digest: what changed since the last night, on one page."""

from collections.abc import Iterator

import altair as alt
import polars as pl

from pipeline.domain.quantities import counted, measured
from pipeline.domain.search import STATUSES
from pipeline.report.cases import new_cases_section, open_cases, open_cases_section
from pipeline.report.charts import PAPER, SERIES, WIDTH, chart, svg
from pipeline.report.ended_cases import ended_cases, ended_cases_section
from pipeline.report.flags import by_rule_section, ended_flags, ended_section, new_flags, new_section
from pipeline.report.in_short import Changes, answered, checks, headline, points, tiles
from pipeline.report.page import PROPERTY, Column, Page, Section, money, named, percent, share
from pipeline.report.read import Reader
from pipeline.report.words import said

_STATUS_COLOURS = ("#4477aa", "#b9c6d2", "#8a8a8a", "#d65a6f", "#b2412f", "#e0c060")
_FIRST_NIGHT = "This is the first published night: price changes appear from the second night on."
_NO_MOVE = "No total of an offer on sale on both nights has changed."
# Nights drawn, moves listed, and moves in the figures.
_NIGHTS, _LARGEST, _MOVES = 30, 10, 1000


def page(reader: Reader) -> Page:
    """Return the digest of the last published night."""
    changes = Changes(
        cases=open_cases(reader),
        ended_cases=ended_cases(reader),
        standing=reader.rows("report.flag", only="rule, severity"),
        new=new_flags(reader),
        ended=ended_flags(reader),
        moves=reader.total("price_move_total"),
        largest=reader.named(_largest_moves(reader)),
    )
    return Page(
        "digest",
        headline(reader, changes),
        _lead(reader),
        _sections(reader, changes),
        tiles=tiles(reader, changes),
        points=points(reader, changes),
    )


def _sections(reader: Reader, changes: Changes) -> Iterator[Section]:
    yield new_cases_section(changes.cases, is_first_night=reader.is_first_night)
    yield open_cases_section(changes.cases, is_first_night=reader.is_first_night)
    yield ended_cases_section(changes.ended_cases, is_first_night=reader.is_first_night)
    yield _moves(reader, changes)
    yield _largest(reader, changes.largest)
    yield new_section(changes.new, is_first_night=reader.is_first_night)
    yield ended_section(changes.ended, is_first_night=reader.is_first_night)
    yield by_rule_section(changes.standing, changes.new, changes.ended)
    yield _coverage(reader)
    yield _quality(reader)


def _lead(reader: Reader) -> str:
    changed = "What was found" if reader.is_first_night else "What changed since the previous night"
    unnamed = "" if reader.has_names else " To see names of properties, load them: nightaudit load properties FILE."
    return f"{changed}, and how complete tonight's data is.{unnamed}"


def _moves(reader: Reader, changes: Changes) -> Section:
    steps = reader.figures("price_step")
    furthest = max((abs(step) for step in steps["from_pct"]), default=0) + 1
    drawn = (
        chart(steps.with_columns(to_pct=pl.col("from_pct") + 1), height=190)
        .mark_bar()
        .encode(
            x=alt.X(
                "from_pct:Q",
                bin="binned",
                title="Change of the total, percent (30 and more at the ends)",
                scale=alt.Scale(domain=[-furthest, furthest], nice=False),
            ),
            x2=alt.X2("to_pct"),
            y=alt.Y("offers:Q", title="Offers", axis=alt.Axis(tickMinStep=1)),
            color=alt.condition("datum.from_pct >= 0", alt.value(SERIES[1]), alt.value(SERIES[0])),
        )
    )
    return Section(
        "price_changes",
        f"{counted(changes.moves['rose'], 'price')} rose and {changes.moves['fell']:,} fell"
        if steps.height
        else "No earlier night to compare prices with"
        if reader.is_first_night
        else "No price changed",
        "Each offer on sale on both nights, tonight and the last before that requested it, is compared with itself. "
        "A change in what is on sale does not count as a price change, nor does an offer that comes back at another "
        "price. List and detail answers are two series: an offer in both counts once in each.",
        steps,
        [svg(drawn)] if steps.height else (),
        why_empty=_FIRST_NIGHT if reader.is_first_night else _NO_MOVE,
        source="report.price_move",
    )


def _largest_moves(reader: Reader) -> pl.DataFrame:
    """Return the largest move of each property, the largest of all first."""
    order = "abs(change_pct) DESC, source DESC, property_id, offer_key"
    first_of_each = f"row_number() OVER (PARTITION BY property_id ORDER BY {order}) = 1"
    found = pl.concat(
        reader.rows("report.price_move", order=order, limit=_MOVES, qualify=first_of_each, where=some)
        for some in reader.some_at_a_time("property_id")
    )
    # Each property has one row, so its id breaks every tie.
    by = (pl.col("change_pct").abs(), pl.col("source"), pl.col("property_id"))
    return found.sort(*by, descending=[True, True, False]).head(_MOVES)


def _largest(reader: Reader, moves: pl.DataFrame) -> Section:
    first = moves.row(0, named=True) if moves.height else None
    title = (
        f"Largest move: {percent(first['change_pct'], is_change=True)}, to {money(first['total'], first['currency'])}"
        if first
        else "No price moves yet"
        if reader.is_first_night
        else "No large moves"
    )
    return Section(
        "largest_moves",
        title,
        "For each property, the offer on sale on both nights whose total changed most. The figures name the sweep, "
        "search and offer of both nights, which lead to the raw answers.",
        moves,
        columns=[
            PROPERTY,
            *named(market="Market", check_in="Check-in"),
            Column("nights", "Nights", digits=0),
            Column("room_name", "Room", is_wide=True),
            Column("board_name", "Board", is_wide=True),
            Column("previous_total", "Before", digits=2, currency="currency"),
            Column("total", "Now", digits=2, currency="currency"),
            Column("change_pct", "Change", "%", 1, is_change=True),
        ],
        why_empty=_FIRST_NIGHT if reader.is_first_night else _NO_MOVE,
        shown=_LARGEST,
        source="report.price_move",
    )


def _coverage(reader: Reader) -> Section:
    reader.whole("mart.sweep")
    sweeps = pl.DataFrame(reader.nights[:_NIGHTS]).select("sweep_id", "started_at", "planned", *STATUSES).reverse()
    words = [said("status", name) for name in STATUSES]
    # If each day has one sweep, sweeps are labelled by day.
    is_daily = not sweeps["started_at"].dt.date().is_duplicated().any()
    form = "%d %b" if is_daily else "%d %b %H:%M"
    long = sweeps.unpivot(STATUSES, index=["started_at"], variable_name="status", value_name="cells").with_columns(
        pl.col("started_at").dt.strftime(form).alias("sweep"),
        pl.col("status").replace_strict({name: place for place, name in enumerate(STATUSES)}).alias("place"),
        pl.col("status").replace_strict(dict(zip(STATUSES, words, strict=True))),
    )
    night = reader.night
    drawn = (
        chart(long, width=min(WIDTH, 130 * sweeps.height), height=190)
        .mark_bar(stroke=PAPER, strokeWidth=0.5)
        .encode(
            x=alt.X(
                "sweep:N",
                sort=None,
                title="Day of the sweep, UTC" if is_daily else "Start of the sweep, UTC",
                axis=alt.Axis(labelAngle=0),
                scale=alt.Scale(paddingInner=0.35),
            ),
            y=alt.Y("cells:Q", title="Cells", stack=True),
            order=alt.Order("place:Q"),
            color=alt.Color(
                "status:N", title=None, sort=words, scale=alt.Scale(domain=words, range=list(_STATUS_COLOURS))
            ),
        )
    )
    return Section(
        "coverage",
        f"{share(answered(night), night['planned'])} of {counted(night['planned'], 'planned cell')} were answered, "
        f"{night['failed']:,} failed",
        "A cell is one property in one market for one stay and party, and has exactly one status. Absent (requested, "
        "but not in the answer) is not the same as sold out; failed and not swept cells say nothing about prices. "
        "Sweeps of different specs differ in size.",
        sweeps,
        [svg(drawn)],
        source="mart.sweep",
    )


def _measured(name: str) -> pl.Expr:
    words = pl.struct("check_name", name).map_elements(lambda of: measured(*of.values()), return_dtype=pl.String)
    return pl.when(pl.col(name).is_not_null()).then(words).alias(f"{name}_words")


def _quality(reader: Reader) -> Section:
    reader.whole("mart.quality")
    failed = reader.query(
        "SELECT severity, market, table_name, check_name, observed, lowest, highest, violations, meaning "
        "FROM mart.quality WHERE sweep_id = $sweep_id AND outcome = 'failed' ORDER BY ALL",
        {"sweep_id": reader.night["sweep_id"]},
    ).with_columns(
        *map(_measured, ("observed", "lowest", "highest")),
        (pl.col("meaning").str.head(1).str.to_uppercase() + pl.col("meaning").str.slice(1)).alias("meaning"),
    )
    counts = checks(reader)
    return Section(
        "quality",
        f"{failed.height:,} of {counted(counts['checks'], 'quality check')} failed"
        if counts
        else "This night was published without an audit",
        "Checks of the night's data before it was published; if a critical one fails, the night is not published "
        "unless someone overrides the check and gives a reason. The quality page shows examples.",
        failed,
        columns=[
            Column("meaning", "What was found", is_wide=True, below="check_name"),
            *named(
                severity="Severity",
                market="Market",
                observed_words="Found",
                lowest_words="At least",
                highest_words="At most",
            ),
        ],
        why_empty="Every judged check passed." if counts else "No audit of this sweep is stored.",
        source="mart.quality",
    )
