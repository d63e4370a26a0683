"""`nightaudit plan`: what a spec will cost."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pipeline.cli import views
from pipeline.cli.given import settings_with
from pipeline.cli.terminal import Terminal, write_json_lines
from pipeline.domain.errors import NightauditError
from pipeline.domain.servers import Cluster
from pipeline.lake import Lake
from pipeline.night.outlook import Outlook, as_record, look_ahead
from pipeline.plan.estimate import TimedStep


def show_plan(spec_path: Path | None, limit: int | None, markets: Sequence[str] | None, form: str) -> None:
    """Print the estimate of a spec."""
    settings = settings_with(spec_path, limit, markets)
    outlook = look_ahead(settings, Lake(settings.lake))
    cluster, said = settings.spread_over, ""
    record = as_record(outlook)
    if cluster is not None:
        workers, refusal = _workers(cluster)
        said = _cluster(outlook, workers, refusal)
        # How many workers a cluster has that cannot be asked is unknown, not 0.
        tasks = None if refusal else sum(workers.values())
        record |= {
            "workers": None if refusal else len(workers),
            "tasks_at_once": tasks,
            "cluster_refusal": refusal or None,
        }
    if form == "json":
        write_json_lines([record])
    else:
        Terminal().print(views.plan_view(settings, outlook, said))


def _workers(cluster: Cluster) -> tuple[Mapping[str, int], str]:
    """Return the threads of each worker of a cluster, or why it cannot be asked."""
    # A slow import.
    from pipeline.process.cluster_client import workers_of

    try:
        return workers_of(cluster), ""
    except NightauditError as error:
        return {}, error.message


def _cluster(outlook: Outlook, workers: Mapping[str, int], refusal: str) -> str:
    """Return how many workers there are, and whether the times of the steps that they share are theirs."""
    known = f"workers: {len(workers)}, tasks at once: {sum(workers.values())}"
    found = f"{refusal.removesuffix('.') or known}."
    of_one = [step.value for step in (TimedStep.AUDIT, TimedStep.PUBLISH) if not outlook.cost.steps[step].is_spread]
    if not of_one:
        return f"{found} The times given for audit and publish come from earlier nights on a cluster."
    return f"{found} The time given for {' and '.join(of_one)} is that of one machine."
