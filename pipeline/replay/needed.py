"""Which parts of the state a rule depends on: a replay of many nights computes no others."""

from pipeline.lake.relations import Relation, read_by, relation, sources, views
from pipeline.publish.state import FILED_UPDATES, OVER_ALL, SMALL_UPDATES, compared

# What every night computes.
_ALWAYS = (*OVER_ALL, "reference_choice_next", "sweep_published")


def needed_by(rule: Relation) -> frozenset[str] | None:
    """Return the tables of the night and of the state that a rule depends on, by full name; None: all of them.

    What becomes of findings about markets also depends on other tables than those that their rules read.
    """
    if "mart.market_parity" in sources(rule):
        return None
    updates = {f"state.{update.name}": relation("staging", update.next) for update in (*FILED_UPDATES, *SMALL_UPDATES)}
    made = updates | {f"night.{name}": relation("staging", name) for name in compared()}
    always = [relation("staging", name) for name in _ALWAYS]
    read = read_by([*made.values(), *always])
    known = {view.full_name: view for view in views()}
    needed, ahead = set[str](), [sources(rule), *(read[each.full_name] for each in always)]
    while ahead:
        new = ahead.pop() - needed
        needed |= new
        ahead += [read[made[name].full_name] for name in new & made.keys()]
        ahead += [sources(known[name]) for name in new & known.keys()]
    return frozenset(needed & made.keys())
