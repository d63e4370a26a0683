"""The alerts of a night, by the settings: after its other steps, or by `nightaudit alerts`."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

from pipeline.lake import Lake
from pipeline.lake.user_query import Bounds
from pipeline.night.confirm import confirmer
from pipeline.notify.alert_rules import AlertRules
from pipeline.notify.alerts import Sent, tell_alerts
from pipeline.notify.pages import page_address, page_addresses
from pipeline.notify.ways import Tell
from pipeline.report.case_problems import problems_of
from pipeline.report.written_pages import written_case_pages
from pipeline.settings import Clock, Settings


def send_alerts(
    settings: Settings,
    lake: Lake,
    rules: AlertRules,
    page: Path,
    block: Callable[[str], Tell] | None,
    *,
    now: Clock | None = None,
    turn: Callable[[], AbstractContextManager[None]] = nullcontext,
    is_rehearsal: bool = False,
) -> list[Sent]:
    """Send alerts about the published file, each with the problem's page, or else with `page`; see `tell_alerts`."""
    return tell_alerts(
        lake,
        rules,
        page_address(lake.reports, page, settings.pages_url),
        case_pages=page_addresses(lake.reports, written_case_pages(lake), settings.pages_url),
        problems=partial(problems_of, lake),
        block=block,
        confirm=confirmer(settings, lake, now, turn),
        is_rehearsal=is_rehearsal,
        bounds=Bounds.of(settings),
    )
