"""`nightaudit publish`: a sweep becomes part of the published file."""

from pipeline.cli import views
from pipeline.cli.given import notification_block, refuse_blocks_without_server
from pipeline.cli.terminal import Terminal
from pipeline.domain.errors import GateBlocked
from pipeline.lake import Lake
from pipeline.night.gate import audit_sweep, is_unaudited, publish_checked, repair_published, tell_if_blocked
from pipeline.night.latest import latest_loaded
from pipeline.process.pandasless import keep_pandas_out
from pipeline.settings import read_settings


def publish(sweep_id: str | None, override: str | None) -> None:
    """Publish a sweep, auditing it first if necessary, and print what it changed."""
    settings = read_settings()
    refuse_blocks_without_server(settings)
    lake = Lake(settings.lake)
    lake.refuse_missing()
    with lake.writing("nightaudit publish"):
        wanted = sweep_id or latest_loaded(lake)
        if is_unaudited(lake, wanted):
            found = audit_sweep(settings, lake, wanted, settings.clock())
            if override is None:
                tell_if_blocked(settings, lake, found, notification_block())
        else:
            keep_pandas_out()
        try:
            published = publish_checked(lake, wanted, settings.clock(), override, settings.analysis, settings.workforce)
        except GateBlocked:
            # Other commands name this one to repair the published file, whatever the latest sweep is like.
            if sweep_id is None:
                repair_published(lake, settings.clock())
            raise
    Terminal().print(views.published_view(published))
