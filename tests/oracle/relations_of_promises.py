"""What offers promise over time: promotions, cancelling, and how prices moved. Expected rows by relation."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from history import OFFER, History, Row, days_before, key_of
from raw_zone import Sweep
from relations_of_prices import taken_off_by_promotions

CHECK_IN_HOUR, HORIZON_HOURS = 15, 24 * 30
ROUNDING = 0.51
MEDIUM_PCT, HIGH_PCT = 2.0, 5.0
EVER = 10**6
PROMISED = re.compile(r"([0-9]+(?:[.,][0-9]+)?) ?%")

Kinds = dict[str, list[Row]]


def kinds_of(sweeps: list[Sweep]) -> Kinds:
    """Return the promotions that each text of promotions names."""
    return {
        offer["promotion"]: sweep.promotions[offer["search_id"], offer["offer_no"]]
        for sweep in sweeps
        for offer in sweep.offers
    }


def _named(kinds: Kinds, offer: Row) -> tuple[bool | None, float | None]:
    """Whether a promotion that lowers the price is named, and the percentage that its text promises."""
    named = [re.sub("[^a-z]", "", (each["promo_type"] or "").lower()) for each in kinds[offer["promotion"]]]
    lowering = [kind in {"discountoff", "freenight"} for kind in named]
    promised = [
        float(found[1].replace(",", "."))
        for each, lowers in zip(kinds[offer["promotion"]], lowering, strict=True)
        if lowers and (found := PROMISED.search(each["description"] or ""))
    ]
    names = True if any(lowering) else False if all(kind == "valueadd" for kind in named) else None
    return names, max(promised, default=None)


def offer_promotion(history: History, kinds: Kinds) -> list[Row]:
    """`mart.offer_promotion`: 100 x (1 - T/P) beside what is named; a free night is near j/N."""
    found = []
    for row in history.on_sale():
        if row["pre_promo_total"] is None and not row["promotion"]:
            continue
        depth = _depth(row)
        names, promised = _named(kinds, row)
        reported = {name: row[name] for name in (*OFFER, "total", "pre_promo_total", "discount_pct")}
        free = None
        if depth is not None and depth > 0:
            nights = math.floor(depth / 100 * row["nights"] + 0.5)
            allowed = ROUNDING * (1 + 100 / (row["pre_promo_total"] / 10_000))
            if 1 <= nights < row["nights"] and abs(depth - 100 * nights / row["nights"]) <= allowed:
                free = nights
        found.append(
            reported
            | {"depth_pct": depth, "names_price_promotion": names, "promised_pct": promised, "free_nights": free}
        )
    return found


def _depth(row: Row) -> float | None:
    if row["total"] is None or not row["pre_promo_total"]:
        return None
    return 100 * (1 - row["total"] / row["pre_promo_total"])


def promotion_arithmetic(history: History, kinds: Kinds) -> list[Row]:
    """`report.promotion_arithmetic`: 100 x (1 - T/P) against D; phantom and unnamed promotions; T above P."""
    return [{name: row[name] for name in (*OFFER, "rule")} for row in broken_promises(history, kinds)]


def broken_promises(history: History, kinds: Kinds) -> list[Row]:
    """Return the same, with their sizes: what was named, given or added, or the points by which a percentage is off."""
    found = []
    for row in offer_promotion(history, kinds):
        if row["total"] is None or not row["pre_promo_total"]:
            continue
        names, taken_off = row["names_price_promotion"], taken_off_by_promotions(row)
        rules = {
            "total_above_reference": taken_off < 0,
            "phantom_promotion": taken_off == 0 and names is True,
            "unnamed_promotion": taken_off > 0 and names is False,
            "wrong_discount": taken_off >= 0
            and row["discount_pct"] is not None
            and abs(row["discount_pct"] - row["depth_pct"]) > ROUNDING * (1 + 100 / (row["pre_promo_total"] / 10_000)),
        }
        for rule in (rule for rule, broken in rules.items() if broken):
            size, amount = _size(rule, row)
            severity = "medium" if size is None or abs(size) >= MEDIUM_PCT else "low"
            found.append(
                {name: row[name] for name in OFFER}
                | {"rule": rule, "size_pct": size, "amount": amount}
                | {"severity": "high" if size is not None and abs(size) >= HIGH_PCT else severity}
            )
    return found


def _size(rule: str, row: Row) -> tuple[float | None, int | None]:
    """Return the size of what is wrong, in percent and in ten-thousandths of a unit."""
    total, before, stated = row["total"], row["pre_promo_total"], row["discount_pct"]
    if rule == "phantom_promotion":
        told = row["promised_pct"] if row["promised_pct"] is not None else stated or None
        return told, None if told is None else _rounded(Fraction(before) * Fraction(str(told)) / 100)
    if rule == "wrong_discount":
        off = abs(Fraction(str(stated)) - 100 * (1 - Fraction(total, before)))
        return round(float(off), 9), _rounded(total - before * (1 - Fraction(str(stated)) / 100))
    return abs(row["depth_pct"]), abs(before - total)


def _rounded(amount: Fraction) -> int:
    whole = math.floor(abs(amount) + Fraction(1, 2))
    return whole if amount > 0 else -whole


def promotion_episode(history: History) -> list[Row]:
    """`mart.promotion_episode`: start, end and length of each promotion, by the sightings around it."""
    found = []
    for path in _paths(history):
        seen = [row for row in path if row["is_offered"] and row["total"] is not None]
        episode: list[Row] = []
        plain: Row | None = None
        for row in [*seen, None]:
            is_below = row is not None and row["pre_promo_total"] is not None and taken_off_by_promotions(row) > 0
            if is_below:
                episode.append(row)
                continue
            if episode:
                depths = [100 * (1 - each["total"] / each["pre_promo_total"]) for each in episode]
                found.append(
                    {name: episode[0][name] for name in OFFER}
                    | {
                        "began_at": episode[0]["valid_from"],
                        "plain_seen_at": plain["last_seen_at"] if plain else None,
                        "promoted_seen_at": episode[-1]["last_seen_at"],
                        "ended_at": row["valid_from"] if row else None,
                        "least_depth_pct": min(depths),
                        "most_depth_pct": max(depths),
                        "is_running": episode[-1]["valid_to"] is None and not history.has_left(episode[-1]),
                    }
                )
                episode = []
            plain = row
    return found


def _paths(history: History) -> list[list[Row]]:
    """Return the intervals of each offer, in time."""
    by_offer: dict[Any, list[Row]] = {}
    running = [row | {"valid_to": None, "ended_by": None} for row in history.open.values()]
    for row in history.closed + running:
        by_offer.setdefault(key_of(row, OFFER), []).append(row)
    return [sorted(path, key=lambda row: row["valid_from"]) for path in by_offer.values()]


def price_path(history: History) -> list[Row]:
    """`mart.price_path`: T by lead days for a fixed stay date, indexed."""
    found = []
    for path in _paths(history):
        stretches: list[Row] = []
        gone, last = False, None
        for row in path:
            if not (row["is_whole"] or row["source"] == "multi"):
                continue
            if not row["is_offered"]:
                gone = True
            elif row["total"] is not None and row["total"] > 0:
                if last is not None and row["total"] == last["total"] and not gone:
                    last["snapshots"] += row["snapshots"]
                    last["last_seen_at"] = row["last_seen_at"]
                else:
                    last = {
                        name: row[name] for name in (*OFFER, "total", "snapshots", "valid_from", "last_seen_at")
                    } | {
                        "step_no": len(stretches),
                        "total_before": stretches[-1]["total"] if stretches else None,
                        "was_gone": gone and bool(stretches),
                    }
                    stretches.append(last)
                gone = False
        found += [
            row
            | {
                "index_first": 100 * row["total"] / stretches[0]["total"],
                "change_pct": 100 * (row["total"] / row["total_before"] - 1) if row["total_before"] else None,
                "lead_days_seen": days_before(row["check_in"], row["last_seen_at"]),
            }
            for row in stretches
        ]
    return found


def price_volatility(history: History) -> list[Row]:
    """`mart.price_volatility`: of consecutive sightings, the root of the mean squared logarithmic change."""
    by_offer: dict[Any, list[Row]] = {}
    for row in price_path(history):
        by_offer.setdefault(key_of(row, OFFER), []).append(row)
    found = []
    for path in by_offer.values():
        moved = [row for row in path if row["total_before"] is not None and not row["was_gone"]]
        snapshots = sum(row["snapshots"] for row in path)
        pairs = snapshots - (len(path) - len(moved))
        if pairs > 0:
            # Twelve places of each, which decide a few of the sixth places of their root.
            squares = sum(round(math.log(row["total"] / row["total_before"]) ** 2, 12) for row in moved)
            found.append(
                {name: path[0][name] for name in OFFER}
                | {
                    "snapshots": snapshots,
                    "pairs": pairs,
                    "changes": len(moved),
                    "volatility_pct": round(100 * math.sqrt(squares / pairs), 6),
                    "lowest": min(row["total"] for row in path),
                    "highest": max(row["total"] for row in path),
                }
            )
    return found


def price_move(history: History) -> list[Row]:
    """`report.price_move`: other totals on the last night, of offers that were on sale on both nights."""
    assert history.latest is not None
    on_sale = {key_of(row, OFFER): row for row in history.on_sale()}
    return [
        {name: before[name] for name in OFFER}
        | {
            "previous_total": before["total"],
            "total": after["total"],
            "change_amount": after["total"] - before["total"],
            "change_pct": 100 * (after["total"] - before["total"]) / before["total"],
        }
        for before in history.closed
        if before["valid_to"] == history.latest.started_at
        and before["ended_by"] == "value"
        and (after := on_sale.get(key_of(before, OFFER))) is not None
        and after["total"] is not None
        and before["total"]
        and after["total"] != before["total"]
        and (after["source"] == "multi" or (after["is_whole"] and before["is_whole"]))
    ]


def floor_move(history: History) -> list[Row]:
    """`mart.floor_move`: the floor moved and the total did not."""
    return [
        {name: row[name] for name in (*OFFER, "total", "floor_before", "floor", "moved_at")}
        for row in history.floor_moves
    ]


def _check_in_at(row: Row) -> datetime:
    return datetime.combine(row["check_in"], time(CHECK_IN_HOUR), UTC)


def _begins_at(penalty: Row, row: Row) -> datetime:
    """When a penalty begins: its exact date, else its window before check-in, else ever since."""
    if penalty["start_at"] is not None:
        return penalty["start_at"]
    hours = penalty["window_hours"]
    if hours is None or hours > EVER:
        return datetime.min.replace(tzinfo=UTC)
    return _check_in_at(row) - timedelta(hours=hours)


def _cost(penalty: Row, row: Row) -> int | None:
    """What a penalty costs: the stated amount; else percentage of the nights; else percentage of the total."""
    if penalty["amount"] is not None:
        return penalty["amount"]
    pct, nights, total = penalty["penalty_pct"], penalty["penalty_nights"] or 0, row["total"]
    if total is None:
        return None
    if pct is None:
        return total if nights == 0 and penalty["is_refundable"] is False else None
    share = pct / 100 * (nights / row["nights"] if nights > 0 else 1)
    return int((total * share).quantize(Decimal(1), ROUND_HALF_UP))


def stated_penalty(history: History) -> list[Row]:
    """`mart.stated_penalty`: what cancelling a detail offer cost when it was last seen; the larger one counts."""
    found = []
    for row in history.on_sale():
        penalties = history.penalties.get(key_of(row, OFFER)) if row["source"] == "detail" else None
        if penalties:
            costs = [
                _cost(penalty, row)
                for penalty in penalties
                if _begins_at(penalty, row) <= row["last_seen_at"]
                and (penalty["end_at"] is None or penalty["end_at"] > row["last_seen_at"])
            ]
            amount = None if None in costs else max(costs, default=0)
            found.append({name: row[name] for name in OFFER} | {"amount": amount})
    return found


def _terms(text: str) -> list[Row]:
    """Return the terms of a policy as they were read."""
    found = []
    for part in text.split("; ") if text else ():
        hours, pct, nights, refundable = part.split(" ")
        found.append(
            {
                "window_hours": None if hours == "None" else int(hours),
                "penalty_pct": None if pct == "None" else Decimal(pct),
                "penalty_nights": None if nights == "None" else Decimal(nights),
                "is_refundable": {"True": True, "False": False}.get(refundable),
                "start_at": None,
                "amount": None,
            }
        )
    return found


def _share(term: Row, nights: int) -> float | None:
    cost = _cost(term, {"total": Decimal(10**12), "nights": nights})
    return None if cost is None else float(Decimal(cost) / 10**12)


def _share_at(terms: list[Row], nights: int, hours: float) -> float | None:
    """The share of the total that cancelling costs at some hours before check-in."""
    shares = [
        _share(term, nights)
        for term in terms
        if (term["window_hours"] is None or (term["window_hours"] > 0 and term["window_hours"] >= hours))
    ]
    return None if None in shares else max(shares, default=0.0)


def policy_strictness(history: History) -> list[Row]:
    """`mart.policy_strictness`: the area under penalty(t) / T over thirty days before check-in."""
    found = []
    sold = {(row["policy"], row["nights"]) for row in history.open.values() if row["is_offered"] and row["policy"]}
    for policy, nights in sold:
        terms = _terms(policy)
        ends = sorted({0, HORIZON_HOURS, *(min(max(term["window_hours"] or 0, 0), HORIZON_HOURS) for term in terms)})
        areas = [(_share_at(terms, nights, until), until - since) for since, until in pairwise(ends)]
        known = [share * hours for share, hours in areas if share is not None]
        strictness = round(sum(known) / HORIZON_HOURS, 9) if len(known) == len(areas) else None
        found.append({"policy": policy, "nights": nights, "strictness": strictness})
    return found


def cancellation(history: History) -> list[Row]:
    """`mart.cancellation`: until when cancelling is free, and what share of the total it cost when last seen."""
    stated = {key_of(row, OFFER): row["amount"] for row in stated_penalty(history)}
    found = []
    for row in history.on_sale():
        key = key_of(row, OFFER)
        hours = (_check_in_at(row) - row["last_seen_at"]).total_seconds() / 3600
        if key in stated:
            amount = stated[key]
            share = None if amount is None or not row["total"] else amount / row["total"]
            is_free = None if amount is None else amount == 0
        elif row["policy"]:
            share = _share_at(_terms(row["policy"]), row["nights"], hours)
            is_free = None if share is None else share == 0
        else:
            share, is_free = None, None
        found.append(
            {name: row[name] for name in OFFER} | {"share_now": share, "is_free_now": is_free} | _deadline(history, row)
        )
    return found


def _deadline(history: History, row: Row) -> Row:
    """Until when it is free: before the earliest penalty that may cost something, if each says when it starts."""
    penalties = history.penalties.get(key_of(row, OFFER)) if row["source"] == "detail" else None
    terms = _terms(row["policy"]) if penalties is None else penalties
    costly = [term for term in terms if (term["amount"] if term["amount"] is not None else term["penalty_pct"]) != 0]
    if row["refundability"] == "non_refundable" or not costly:
        return {"free_until_at": None, "deadline_rule": "none"}
    if all(term["start_at"] is not None for term in costly):
        return {"free_until_at": min(term["start_at"] for term in costly), "deadline_rule": "date"}
    windows = [term["window_hours"] for term in costly]
    if None in windows or max(windows) > EVER:
        return {"free_until_at": None, "deadline_rule": "none"}
    return {"free_until_at": _check_in_at(row) - timedelta(hours=max(windows)), "deadline_rule": "window"}
