"""Telling receivers what the published file has to say to them, once.

What was told is kept in the lake, for each rule and receiver by itself: a receiver who could not be reached is told the
next time, and the others are not told twice.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from pipeline.domain.errors import CorruptObject, InputError
from pipeline.lake import Lake
from pipeline.lake.user_query import Bounds, Condition, user_query
from pipeline.notify.alert_rules import AlertRules, Receiver, Rule
from pipeline.notify.match import Row, messages, news
from pipeline.notify.ways import NotDelivered, Tell, through, webhook

logger = logging.getLogger(__name__)

_STATE = "alerts/told.json"
# Rule, receiver and key of a row: the words in which it was told.
_Told = dict[str, dict[str, dict[str, str]]]

# A message lists the first few: the gravest, and not ten of one property.
_GRAVEST_FIRST = "CASE severity WHEN 'high' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END, abs(size_pct) DESC NULLS LAST"
_OF_EACH_PROPERTY = f"row_number() OVER (PARTITION BY rule, property_id ORDER BY {_GRAVEST_FIRST},"

# No message is about more, and each is held in memory with its evidence.
_MOST_ROWS = 100_000

_BOUNDS = Bounds()

# Returns the flags among those named that were found again just now.
Confirm = Callable[[Sequence[str]], set[str]]


@dataclass(frozen=True, slots=True)
class Told:
    """What came of a rule for one receiver. `failure` is why nothing could be sent.

    `texts` are the messages, subject and text, that were sent or, in a rehearsal, would be.
    """

    rule: str
    receiver: str
    new: int
    over: int
    standing: int
    failure: str | None = None
    texts: tuple[tuple[str, str], ...] = ()


def tell_alerts(
    lake: Lake,
    rules: AlertRules,
    where: str,
    *,
    block: Callable[[str], Tell] | None = None,
    confirm: Confirm | None = None,
    is_rehearsal: bool = False,
    bounds: Bounds = _BOUNDS,
) -> list[Told]:
    """Tell each receiver what is new and what is over since it was told last. The caller holds the writer lock.

    `where` says where more is to be seen. `block` gives a way to tell through a Prefect notification block. New flags
    of rules that ask for it are told only once `confirm` has found them again. A rehearsal sends and remembers nothing.

    `bounds` are what the query of one rule may take.

    Raises InputError where a rule's relation or condition cannot be read: then nothing has been sent.
    """
    told = _read(lake)
    found = {rule.name: _rows(lake, rule, bounds) for rule in rules.rule}
    results = []
    for rule in rules.rule:
        rows = confirmed(rule, found[rule.name], told.get(rule.name, {}), None if is_rehearsal else confirm)
        for who in rule.who:
            before = told.setdefault(rule.name, {}).setdefault(who, {})
            changed = news(rule, rows, before)
            counts = (len(changed.new), len(changed.over), changed.standing)
            texts = tuple(messages(rule, changed, where))
            failure = None
            if changed and not is_rehearsal:
                failure = _send(texts, _ways(who, rules.receiver[who], block))
                if failure:
                    logger.warning("%r could not be told of %r: %s. It is tried again.", who, rule.name, failure)
                else:
                    for key in changed.over:
                        del before[key]
                    before |= changed.new
                    # After each receiver: what was sent must not be sent again, whatever happens next.
                    lake.put(_STATE, msgspec.json.encode(told))
            results.append(Told(rule.name, who, *counts, failure, texts))
    return results


def _rows(lake: Lake, rule: Rule, bounds: Bounds) -> list[Row]:
    key = ", ".join('"' + name.replace('"', '""') + '"' for name in rule.key)
    order = f"{_OF_EACH_PROPERTY} {key}), {_GRAVEST_FIRST}, {key}" if rule.relation == "report.flag" else key
    try:
        with user_query(lake.published_file, Condition(rule.relation, rule.where, order), bounds) as answer:
            rows: list[Row] = [
                dict(zip(answer.columns, row, strict=True)) for row in islice(answer.rows(), _MOST_ROWS + 1)
            ]
    except InputError as error:
        raise InputError(
            f"The rule {rule.name!r} cannot be asked: {error.message.splitlines()[0]}",
            kept="No alert was sent.",
            hint=f'See its columns: nightaudit query "DESCRIBE {rule.relation}"',
        ) from None
    if len(rows) > _MOST_ROWS:
        raise InputError(
            f"The rule {rule.name!r} chooses more than {_MOST_ROWS:,} rows.",
            kept="No alert was sent.",
            hint="Narrow its `where`.",
        )
    return rows


def confirmed(
    rule: Rule, rows: Sequence[Row], told: Mapping[str, Mapping[str, str]], confirm: Confirm | None
) -> Sequence[Row]:
    """Return the rows of a rule without flags that are new and were not found again."""
    if not rule.confirm or confirm is None:
        return rows
    known = {key for keys in told.values() for key in keys}
    doubtful = [row["flag_id"] for row in rows if row["flag_id"] not in known]
    stand = confirm(doubtful) if doubtful else set()
    return [row for row in rows if row["flag_id"] in known or row["flag_id"] in stand]


def _ways(who: str, receiver: Receiver, block: Callable[[str], Tell] | None) -> list[Callable[[], Tell]]:
    ways: list[Callable[[], Tell]] = []
    if receiver.webhook_from:
        ways.append(lambda: webhook(_address(who, receiver.webhook_from or "")))
    if receiver.block:
        ways.append(lambda: through(block, receiver.block or ""))
    return ways


def _address(who: str, variable: str) -> str:
    if address := os.environ.get(variable):
        return address
    raise InputError(f"[receiver.{who}] takes its address from {variable}, and that is not set.")


def _send(texts: Sequence[tuple[str, str]], ways: Sequence[Callable[[], Tell]]) -> str | None:
    """Send by every way; return why it failed, None if it did not."""
    try:
        for way in ways:
            tell = way()
            for subject, text in texts:
                tell(subject, text)
    except InputError as error:
        return error.message.removesuffix(".")
    except NotDelivered as error:
        return str(error)
    except Exception as error:
        # Not the error's text: that of a notification block may hold the secret part of its address.
        return type(error).__name__
    return None


def _read(lake: Lake) -> _Told:
    try:
        return msgspec.json.decode(lake.get(_STATE), type=_Told)
    except FileNotFoundError:
        return {}
    except msgspec.MsgspecError as error:
        raise CorruptObject(
            f"{lake.local(_STATE)} cannot be read: {error}",
            kept="No alert was sent.",
            hint="Remove it to begin anew: what stands now is then told once more.",
        ) from None
