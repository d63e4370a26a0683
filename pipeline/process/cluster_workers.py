"""Whether the workers of a cluster can do our work: checked for each before it gets any, and again in each task."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.domain.errors import SettingsError
from pipeline.process.carrier import Probe
from pipeline.process.cluster_client import MOST_NAMED, ask_each
from pipeline.process.made_of import look

if TYPE_CHECKING:
    from distributed import Client

# A probe asks other servers, for whose silence it has bounds of its own (at most 30 seconds), and says which it is.
_PROBE_SECONDS = 60.0
KEPT = "All raw answers that have landed are kept, and the published file is unchanged."


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a worker must have: sight of a folder that the pool created in the lake, and these versions."""

    folder: str
    made_of: Mapping[str, str]
    is_to_be_seen: bool = True


def refuse_unfit(client: Client, address: str, workers: list[str], wanted: Wanted, probes: Iterable[Probe]) -> None:
    """Raise SettingsError, which names each worker that cannot do our work and says why; ClusterAway if one is silent.

    Each is asked all questions up to the first that it fails.
    """
    folder, refusals = Path(wanted.folder), {}
    for worker, seen in ask_each(client, address, workers, partial(look, folder)):
        if isinstance(seen, BaseException):
            refusals[worker] = f"cannot run nightaudit: {type(seen).__name__}: {seen}"
        elif why := differs(seen, wanted):
            refusals[worker] = why
        elif seen["folder"] == wanted.folder and not (folder / seen["answer"]).exists():
            refusals[worker] = "sees a different lake from this machine"
    for probe in probes:
        fit = [worker for worker in workers if worker not in refusals]
        for worker, why in ask_each(client, address, fit, probe, _PROBE_SECONDS):
            if isinstance(why, BaseException):
                raise why
            if why:
                refusals[worker] = why
    if refusals:
        raise refused(sorted(refusals.items()), len(workers))


def differs(seen: Mapping[str, str], wanted: Wanted) -> str:
    """Return how a worker differs from what is wanted; empty if it does not."""
    other = [f"{name} {seen[name]} (here: {needed})" for name, needed in wanted.made_of.items() if seen[name] != needed]
    if other:
        return f"has {', '.join(other)}"
    if wanted.is_to_be_seen and seen["folder"] != wanted.folder:
        return seen["folder"] or f"does not see the lake's folder {Path(wanted.folder).parents[1]}"
    return ""


def this_worker() -> str:
    """Return the address by which the cluster knows the worker that this task runs on; outside one, this machine."""
    from distributed import get_worker

    try:
        return str(get_worker().address)
    except ValueError:
        return platform.node()


def refused(refusals: Sequence[tuple[str, str]], workers: int) -> SettingsError:
    """Return the error that names workers and says why each cannot be used; `workers` is how many there are."""
    named = "; ".join(f"{worker} {why.removesuffix('.')}" for worker, why in refusals[:MOST_NAMED])
    more = f"; and {len(refusals) - MOST_NAMED} more" if len(refusals) > MOST_NAMED else ""
    some = "A worker" if len(refusals) == 1 else f"{len(refusals)} of {workers} workers"
    return SettingsError(
        f"{some} of NIGHTAUDIT_CLUSTER cannot be used: {named}{more}.",
        kept=KEPT,
        hint="Every worker needs the lake under the same path, the same installation and, to send searches, the same "
        "supplier (NIGHTAUDIT_BASE_URL) and NIGHTAUDIT_RATE_STORE; restart it after a change.",
    )
