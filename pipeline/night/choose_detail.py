"""Which properties a detail sweep covers: by rule from the last published night, within a budget of requests.

Properties are chosen with all stays, parties and markets of the spec, not single cells: list answers can then be
compared with detail answers everywhere, content and fees belong to the property, and the plan stays arithmetic. The
order is that of the spec's rules; within a rule, properties that have gone longest without a detail answer come first,
then lower ids. The same published night gives the same choice.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from pipeline.domain.errors import SpecError
from pipeline.domain.search import Operation
from pipeline.lake.database import query_published
from pipeline.lake.relations import relation
from pipeline.plan import SweepPlan
from pipeline.spec import DetailRule, SweepSpec, resolve_watched

# The one-row relation `given` has the parameters.
_QUERY = (
    "WITH given AS (SELECT $rules::VARCHAR[] AS rules, $watched::BIGINT[] AS watched, "
    "$properties::BIGINT[] AS properties, $since::TIMESTAMPTZ AS since) FROM ({}) ORDER BY place"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The properties to search in detail, and which rules chose them.

    `fitting` counts the properties of each rule before the budget applies, each under its first rule. `requests_each`
    is for one property; `is_first_night`: nothing was published to choose from.
    """

    property_ids: tuple[int, ...]
    fitting: dict[str, int] = field(default_factory=dict)
    requests_each: int = 0
    is_first_night: bool = False


def choose_detail(
    spec: SweepSpec, property_ids: Sequence[int], snapshot_date: date, published_file: Path, spec_folder: Path
) -> Choice | None:
    """Return the properties that the spec's rules choose; None: it has no rules. Others on its watch list are ignored.

    Relative files of the spec start at `spec_folder`. Raises SpecError if such a file cannot be read, or the budget is
    too small for one property.
    """
    detail = spec.detail
    if detail is None:
        return None
    swept = set(property_ids)
    watched = [property_id for property_id in resolve_watched(detail, spec_folder) if property_id in swept]
    one = SweepPlan.of(spec, property_ids[:1], snapshot_date, property_ids[:1])
    each = one.counts().searches_by_operation.get(Operation.SINGLE, 0)
    if detail.budget < each:
        raise SpecError(
            f"detail.budget of the sweep spec is {detail.budget} requests, but a single property takes {each}.",
            hint="Raise it, or list fewer stays, parties, markets or currencies.",
        )
    is_first = not published_file.exists()
    if is_first:
        ranked = [(property_id, DetailRule.WATCH.value) for property_id in watched]
    else:
        since = datetime.combine(snapshot_date - timedelta(days=detail.stale_after_days), time.min, UTC)
        parameters = {
            "rules": [rule.value for rule in detail.choose],
            "watched": watched,
            "properties": sorted(property_ids),
            "since": since,
        }
        rows = query_published(published_file, _QUERY.format(relation("staging", "detail_candidate").sql), parameters)
        ranked = [(row[0], row[1]) for row in rows.fetchall()]
    chosen = tuple(sorted(property_id for property_id, _ in ranked[: detail.budget // each]))
    return Choice(chosen, dict(Counter(reason for _, reason in ranked)), each, is_first)
