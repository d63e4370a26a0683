"""`nightaudit cases` and `nightaudit case`: what to call about, and the notes on it."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path

from rich.text import Text

from pipeline.cli.query import show_query
from pipeline.cli.terminal import Terminal, listing
from pipeline.domain.errors import LakeError
from pipeline.domain.problem import NOTED, Problem, markets_of, status_of, whom_of
from pipeline.domain.quantities import cost_said
from pipeline.domain.texts import literal, printable
from pipeline.inputs.case_notes import case_row, cases_query, open_cases, refuse_unknown_places, say_of_case
from pipeline.lake import Lake
from pipeline.lake.relations import finding_rules
from pipeline.lake.simulated import simulated_note
from pipeline.publish.refresh import refresh
from pipeline.replay.finding import Row
from pipeline.report.case_problems import problems_of
from pipeline.settings import read_settings

_LINES_OF_A_TABLE = 25
# A narrower terminal shows each problem in a few lines.
_WIDTH_OF_A_TABLE = 140


def list_cases(limit: int | None, places: Mapping[str, str | None], form: str, output: Path | None) -> None:
    """Write the open cases: completely as CSV, JSON lines, Parquet or an Excel sheet, or their problems for reading.

    `places` filters them by columns of `mart.property`. The default of `limit` is 25 problems in a table, and all cases
    otherwise.
    """
    lake = Lake(read_settings().lake)
    refuse_unknown_places(lake, places)
    if form != "table" or output is not None:
        # Nested columns do not fit a spreadsheet's cells; `nightaudit case` shows the evidence. Without rates there is
        # no other cost than the amounts.
        amounts = "list_transform(amounts, lambda each: each.amount || ' ' || each.currency)"
        titles = ", ".join(f"{literal(rule.name)}: {literal(rule.title)}" for rule in finding_rules().values())
        flat = (
            f"case_id, rule, MAP {{{titles}}}[rule] AS problem, property_id, property_name, * EXCLUDE (case_id, "
            "rule, property_id, property_name, evidence, amounts, markets), array_to_string(markets, ', ') "
            "AS markets, "
            f"nullif(array_to_string({amounts}, ' + '), '') AS amounts"
        )
        show_query(f"SELECT {flat} FROM ({cases_query(places)})", form, limit, None, output)  # noqa: S608 - our own words
        return
    console = Terminal()
    open_ids = [case["case_id"] for case in open_cases(lake, None, places)]
    found = problems_of(lake, open_ids)
    problems = found[: limit or _LINES_OF_A_TABLE]
    if note := simulated_note(lake.published_file):
        console.print(Text(note))
    if not problems:
        asked = ", ".join(f"{column.removeprefix('property_')} {it}" for column, it in places.items() if it is not None)
        console.print(Text(f"No case is open for {asked}." if asked else "No case is open."))
    elif console.width < _WIDTH_OF_A_TABLE:
        _print_in_lines(console, problems)
    else:
        table = listing("case", "status", "problem", "where", "cost", "since", "finding")
        for problem in problems:
            # As Text, because they come from the supplier and must not be read as markup.
            table.add_row("\n".join(problem.cases), problem.status, *(Text(words) for words in _in_words(problem)))
        console.print(table)
    if len(found) > len(problems):
        # Otherwise who reads the first ones takes them for all.
        more = f"… only {len(problems):,} of {len(found):,} problems are shown; for more, use --limit."
        console.print(Text(more, style="dim"))


def _in_words(problem: Problem) -> tuple[str, ...]:
    """Return title, place, cost, first day and finding of a problem."""
    place = printable(", ".join(filter(None, (problem.whom, problem.markets))))
    return problem.title, place, problem.cost or "", f"{problem.since:%Y-%m-%d}", problem.finding


def _print_in_lines(console: Terminal, problems: Sequence[Problem]) -> None:
    for problem in problems:
        title, where, cost, since, finding = _in_words(problem)
        case_id, *_ = problem.cases
        _, *others = (f"{each} ({about})" for each, about in problem.cases.items())
        first = Text.assemble((case_id, "bold"), f"  {problem.status} since {since}  {cost}")
        # What is cut is in `nightaudit case`; a pipe gets all of it.
        for line in (first, Text(f"  {where}: {title}"), Text(f"  {finding}", style="dim")):
            if console.is_terminal:
                console.print(line, no_wrap=True, overflow="ellipsis")
            else:
                console.print(line, soft_wrap=True)
        if others:
            console.print(Text(f"  further cases: {'; '.join(others)}"), soft_wrap=True)


def show_or_note(
    case_id: str, *, is_acknowledged: bool, muted_until: date | None, note: str | None, owner: str | None
) -> None:
    """Record the given annotations of a case, and print the case. An empty note or owner removes it."""
    settings = read_settings()
    lake = Lake(settings.lake)
    if is_acknowledged or muted_until or note is not None or owner is not None:
        with lake.writing("a note on a case"):
            say_of_case(
                lake,
                case_id,
                settings.clock(),
                is_acknowledged=is_acknowledged,
                muted_until=muted_until,
                note=note,
                owner=owner,
            )
            if not refresh(lake):
                raise LakeError(
                    "The published file could not be updated, so it does not show the annotation.",
                    kept="The annotation is recorded.",
                    hint="Fix the cause in the warning above (disk space, for example), then: nightaudit publish",
                )
    _print(case_row(lake, case_id))


def _where(case: Row) -> str:
    return f"{whom_of(case)}, {markets_of(case)}" if case["scope"] != "market" else whom_of(case)


def _opened_at(case: Row) -> datetime:
    # Files of earlier versions lack it.
    at: datetime = case.get("opened_at") or case["first_seen_at"]
    return at


def _print(case: Row) -> None:
    console = Terminal(soft_wrap=True, highlight=False)
    facts = [
        ("Case", f"{case['case_id']} ({status_of(case)}, {case['severity']})"),
        ("Problem", f"{finding_rules()[case['rule']].title} ({case['rule']})"),
        ("Where", _where(case)),
        ("Finding", case["finding"]),
        ("Size", f"{case['flags']} flags, {case['offers']} offers, {case['stays']} stays"),
        ("Cost", cost_said(case["exposure_eur"], case["amounts"]) or "not about an amount"),
        ("Open since", f"{_opened_at(case):%Y-%m-%d %H:%M} UTC"),
        ("Seen", f"{case['first_seen_at']:%Y-%m-%d %H:%M} to {case['last_seen_at']:%Y-%m-%d %H:%M} UTC"),
    ]
    if case["share_pct"] is not None:
        share = f"{case['share_pct']:.0f}% of {case['properties_judged']} properties of the market"
        interval = f"{case['share_lowest_pct']:.0f}% to {case['share_highest_pct']:.0f}%"
        facts.append(("Spread", f"{case['spread']}: {share} ({interval})"))
    facts += [(label, str(case[name])) for name, label in NOTED.items() if case[name] is not None]
    if case["part_of_case_id"]:
        facts.append(("Part of", case["part_of_case_id"]))
    facts += [("Evidence", f"{item['finding']} nightaudit explain {item['flag_id']}") for item in case["evidence"]]
    console.facts(facts)
