"""`nightaudit explain`: a flag or another finding, traced to its raw answers and recomputed."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from pipeline.cli.query_values import as_text, json_text
from pipeline.cli.terminal import Terminal, listing
from pipeline.domain.errors import NightauditError
from pipeline.inputs.case_notes import flags_of_cases
from pipeline.lake import Lake
from pipeline.replay.explain import Explanation, Observation, explain
from pipeline.report.words import role_said
from pipeline.settings import read_settings

_MONEY = ("total", "pre_promo_total", "floor", "included_charges", "excluded_charges")
_PRICE = ("room_id", "board_id", "policy_key")
_OFFER = ("room_id", "room_name", "board_id", "board_name", "policy_key", "discount_pct", "available_rooms")


def show_explanation(flag_id: str, form: str) -> None:
    """Print how a flag came about. Raises NightauditError if recomputing it gives a different verdict."""
    settings = read_settings()
    lake = Lake(settings.lake)
    flag_id = flags_of_cases(lake, [flag_id])[0]
    with _display() as watch:
        explained = explain(lake, flag_id, settings.max_body_bytes, watch)
    if form == "json":
        sys.stdout.write(json_text(as_json(explained), indent=2) + "\n")
    else:
        _print(explained)
    if not explained.is_reproduced:
        raise NightauditError(
            f"Recomputing {flag_id} from its raw answers gives a different result.",
            kept="Nothing was changed.",
            hint=_why_different(explained),
        )


@contextmanager
def _display() -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal how many nights are replayed: a finding may rest on months of them."""
    console = Terminal(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("nights"),
        TimeRemainingColumn(),
    )
    shown = console.is_terminal
    with Progress(*columns, console=console, transient=True, expand=True, disable=not shown) as progress:
        task = progress.add_task("reading the answers", total=None)

        def watch(done: int, nights: int) -> None:
            progress.update(task, description="recomputing", completed=done, total=nights)

        yield watch


def as_json(explained: Explanation) -> dict[str, Any]:
    """Return an explanation as one document; amounts and instants are texts."""
    return {
        "flag": explained.flag,
        "is_flag": explained.is_flag,
        "rule": {
            "name": explained.flag["rule"],
            "version": explained.flag["rule_version"],
            "relation": explained.rule.full_name,
            "definition": explained.definition,
            "sql": explained.rule.sql,
        },
        "observations": [
            {
                "role": each.role,
                "raw_address": each.evidence.address,
                "body_sha256": each.evidence.body_sha256,
                "is_body_unchanged": each.evidence.is_loaded,
                "started_at": each.search["started_at"],
                "request": each.request,
                "offer": each.offer,
            }
            for each in explained.observations
        ],
        "sweeps_replayed": explained.sweeps,
        "selling_prices": explained.prices,
        "fx": explained.flag["fx"],
        "verdict": {
            "is_reproduced": explained.is_reproduced,
            "is_found_again": explained.is_found,
            "compared": [
                {"name": each.name, "flagged": each.flagged, "recomputed": each.recomputed, "is_same": each.is_same}
                for each in explained.comparisons
            ],
        },
    }


def _print(explained: Explanation) -> None:
    console = Terminal(soft_wrap=True, highlight=False)
    flag = explained.flag
    console.facts(_facts(explained))
    console.print(Text(explained.definition, "dim"))
    for number, each in enumerate(explained.observations, 1):
        role = role_said(each.role) or each.role
        console.print(Text(f"\nObservation {number} of {len(explained.observations)}: {role}", "bold"))
        console.facts(_observed(each), "dim", "  ")
    if flag["fx"]:
        fx = flag["fx"]
        rate = f"1 {fx['from_currency']} = {fx['rate']} {fx['to_currency']}, reference rate of {fx['rate_date']}"
        console.facts([("Exchange", rate)], before="\n")
    console.facts(_priced(explained), before="\n")
    nights = f"{len(explained.sweeps)} sweep{'s' * (len(explained.sweeps) != 1)}"
    console.print(Text(f"\nRecomputed from the raw answers of {nights}", "bold"))
    if not explained.is_found:
        console.print(Text("The rule finds nothing in these answers.", "red"))
        return
    table = listing("", "flagged", "recomputed", "")
    for compared in explained.comparisons:
        if compared.name == "evidence" and compared.is_same:
            continue
        differs = Text("another version", "yellow") if compared.is_version else Text("DIFFERENT", "red")
        mark = Text("same", "green") if compared.is_same else differs
        table.add_row(compared.name, Text(as_text(compared.flagged)), Text(as_text(compared.recomputed)), mark)
    console.print(table)
    console.print(_result(explained))


def _result(explained: Explanation) -> Text:
    if not explained.is_reproduced:
        return Text("Different result.", "red")
    versions = explained.changed_version
    since = (
        f" Only the version of the rule differs: version {versions.flagged} made the finding, and version "
        f"{versions.recomputed} confirms it."
        if versions
        else ""
    )
    return Text(f"Same result, number by number.{since}", "green")


def _why_different(explained: Explanation) -> str:
    if versions := explained.changed_version:
        return (
            f"Version {versions.flagged} of the rule made the finding, and version {versions.recomputed} judges it "
            "differently. Publish a night with this version: it judges every open finding again."
        )
    return "If this version of nightaudit published the night, please report this."


def _facts(explained: Explanation) -> list[tuple[str, str]]:
    flag = explained.flag
    facts = [
        ("Flag" if explained.is_flag else "Finding (not a flag)", flag["flag_id"]),
        ("Finding", f"{flag['finding']} [{flag['severity']}]"),
        ("Rule", f"{flag['rule']}, version {flag['rule_version']}, {explained.rule.full_name}"),
    ]
    if not explained.is_flag:
        why = (
            "it is not from a published night; if the next night finds it too, it becomes a flag"
            if explained.makes_flags
            else "this rule creates no flags"
        )
        return [*facts, ("Flagged", f"no; {explained.rule.full_name} contains it now, but {why}")]
    end = f", ended {flag['resolved_at']} ({flag['ended_by']})" if flag["resolved_at"] else ""
    sweeps = f"{flag['snapshots']} sweep{'s' * (flag['snapshots'] != 1)}"
    seen = f"{flag['first_flagged_at']} to {flag['last_flagged_at']}, seen in {sweeps}{end}"
    return [*facts, ("Flagged", seen)]


def _priced(explained: Explanation) -> list[tuple[str, str]]:
    """Return the flagged selling price, or else every one of the cell, with what it applies to."""
    flagged = [price for price in explained.prices if price["is_flagged"]]
    facts = []
    for price in flagged or explained.prices:
        of = ", ".join(f"{name} {price[name]}" for name in _PRICE if price[name] is not None) or "any room"
        sold = f"{price['price']} {price['currency']}, {of}, on sale {price['observed_at']}"
        facts.append(("Selling price", f"{sold} ({price['channel'] or 'no channel'})"))
    left = len(explained.prices) - len(flagged)
    if flagged and left:
        facts.append(("Other selling prices of the stay", f"{left}; see --format json"))
    return facts


def _observed(each: Observation) -> list[tuple[str, str]]:
    search, request, offer = each.search, dict(each.request), each.offer
    if "propertyIds" in request:
        request["propertyIds"] = f"{len(request['propertyIds'])} ids"
    stay = f"{search['check_in']}, {search['nights']} nights, party {search['party']}"
    facts = [
        ("Search", f"{search['operation']}, {search['market']}, {search['product_type']}, {stay}"),
        ("Request", json_text(request)),
        ("Sent", f"{search['started_at']} in the sweep {search['sweep_id']}"),
        ("Raw answer", each.evidence.address),
        ("Show it", f"nightaudit show {each.evidence.address}"),
        ("SHA-256", f"{each.evidence.body_sha256} (unchanged since it was loaded)"),
    ]
    if offer is None:
        # The last answer with an offer is not about a single one of its offers.
        is_of_all = each.role == "last_offer"
        return [*facts, ("Offer", "some; the finding is about no single one" if is_of_all else "not in this answer")]
    money = ", ".join(f"{name} {offer[name]}" for name in _MONEY if offer[name] is not None)
    other = ", ".join(f"{name} {offer[name]}" for name in _OFFER if offer[name] is not None)
    return [
        *facts,
        ("Offer", f"property {offer['property_id']}, {other}"),
        ("Prices", f"{money}, in {offer['currency']}"),
    ]
