"""The value that a night's steps pass on: each step returns it with its own result added."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pipeline.lake import Lake
from pipeline.lake.raw import Manifest
from pipeline.settings import Clock, Settings
from pipeline.sweep import SweepProgress

if TYPE_CHECKING:
    # Slow imports, which a sweep alone does not need.
    from pipeline.audit import Audit
    from pipeline.night.aside import Aside
    from pipeline.night.summary import NightSummary
    from pipeline.notify.ways import Tell
    from pipeline.publish import Published
    from pipeline.report.page_files import Written
    from pipeline.sandbox.server.launch import SandboxProcess


@dataclass(frozen=True, slots=True)
class Night:
    """A night in progress; results of later steps are None.

    `missed` counts the receivers that the last step could not reach.
    `clock` overrides the clock of the settings. `watch` gets the progress of the sweep a few times a second, and `show`
    the summary once the night is published, even if it then ends with an error. `block` returns the way through a
    Prefect notification block. `turn` is held while requests are sent: it may make other runs wait, or wait for them.
    `sandbox` is a sandbox that is already running. `aside` judges and draws, if given.
    """

    settings: Settings
    lake: Lake
    manifest: Manifest | None = None
    collected: SweepProgress | None = None
    audit: Audit | None = None
    published: Published | None = None
    pages: tuple[Written, ...] = ()
    summary: NightSummary | None = None
    missed: int = 0
    clock: Clock | None = None
    watch: Callable[[SweepProgress], None] = lambda _: None
    show: Callable[[NightSummary], None] = lambda _: None
    block: Callable[[str], Tell] | None = None
    turn: Callable[[], AbstractContextManager[None]] = nullcontext
    sandbox: SandboxProcess | None = None
    aside: Aside | None = None

    def now(self) -> datetime:
        """Return the present time of this night's clock."""
        return (self.clock or self.settings.clock)()

    @property
    def sweep(self) -> Manifest:
        """The sweep that this night has begun or resumes."""
        assert self.manifest is not None  # noqa: S101 - the step `begin` comes first
        return self.manifest
