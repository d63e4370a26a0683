"""The supplier of a night: that of the settings, or a sandbox that runs while it is used."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from pipeline.domain.addresses import host_and_port
from pipeline.domain.errors import InputError
from pipeline.lake import Lake
from pipeline.lake.allowance import DailyCalls
from pipeline.lake.raw import Manifest, landed
from pipeline.night.overview import begun_at
from pipeline.night.read_spec import story_nights
from pipeline.settings import Clock, Settings, utc_now
from pipeline.supplier.auth import ClientCredentials
from pipeline.supplier.client import SupplierClient
from pipeline.supplier.pacer import Allowance, Unlimited
from pipeline.supplier.shared_calls import RedisCount, SharedCalls

if TYPE_CHECKING:
    from pipeline.sandbox.server.launch import SandboxProcess

SANDBOX_NAME = "sandbox"


def supplier_name(settings: Settings) -> str:
    """Return the name of a supplier in the lake: the sandbox's name, or the host and port of its address."""
    return SANDBOX_NAME if settings.is_simulated else host_and_port(settings.base_url or "")


def allowance_of(settings: Settings, lake: Lake | None, now: Clock) -> SharedCalls | DailyCalls | Unlimited:
    """Return the allowance of the day's calls: counted in the lake, if it is given, and in a shared store, if set."""
    if settings.daily_calls is None:
        return Unlimited()
    own = DailyCalls(lake, settings.daily_calls, now) if lake is not None else Unlimited()
    if settings.rate_store is None:
        return own
    count = RedisCount(settings.rate_store.get_secret_value(), supplier_name(settings))
    return SharedCalls(settings.daily_calls, count, own)


@asynccontextmanager
async def open_client(
    settings: Settings,
    lake: Lake,
    manifest: Manifest | None = None,
    *,
    now: Clock = utc_now,
    allowance: Allowance | None = None,
    sandbox: SandboxProcess | None = None,
    tokens: dict[str, ClientCredentials] | None = None,
) -> AsyncIterator[SupplierClient]:
    """Open a client for the supplier of `manifest` or, without one, of the settings.

    A sandbox answers as it did when that sweep began, so that a resumed sweep gets the same answers. A running one
    (`sandbox`) is set to that night and left running. `tokens` keeps them for the next client of this process.
    Raises InputError if the settings name a different supplier from the sweep's.
    """
    if manifest is not None and manifest.supplier != supplier_name(settings):
        has_landed = bool(landed(lake, manifest.sweep_id))
        raise another_supplier(
            manifest, supplier_name(settings), " " + what_else(manifest.sweep_id, has_landed=has_landed)
        )
    async with AsyncExitStack() as opened:
        if not settings.is_simulated:
            client = SupplierClient.of(settings, allowance=allowance, now=now, tokens=tokens)
        else:
            if sandbox is None:
                sandbox = opened.enter_context(_sandbox(settings, lake, manifest))
            elif manifest is not None:
                _turn(sandbox, settings, lake, manifest)
            client = SupplierClient.of(
                settings,
                base_url=sandbox.base_url,
                client_id=sandbox.client_id,
                client_secret=sandbox.client_secret,
                allowance=allowance,
                now=now,
            )
        yield await opened.enter_async_context(client)


def _sandbox(settings: Settings, lake: Lake, manifest: Manifest | None) -> SandboxProcess:
    """Return the sandbox of a sweep's night; without a sweep, of the first night."""
    from pipeline.sandbox.server.launch import SandboxProcess

    seed, properties = settings.sandbox_seed, settings.sandbox_properties
    if manifest is None:
        return SandboxProcess(seed=seed, today=settings.clock().date(), properties=properties)
    sweeps = lake.sweep_ids()
    return SandboxProcess(
        seed=seed,
        night=sweeps.index(manifest.sweep_id),
        opened=begun_at(sweeps[0]).date(),
        today=manifest.snapshot_date,
        clock=settings.sandbox_clock,
        properties=properties,
        story=story_nights(lake),
    )


def _turn(sandbox: SandboxProcess, settings: Settings, lake: Lake, manifest: Manifest) -> None:
    night = lake.sweep_ids().index(manifest.sweep_id)
    clock = settings.sandbox_clock.isoformat() if settings.sandbox_clock else None
    sandbox.control("night", {"night": night, "today": manifest.snapshot_date.isoformat(), "clock": clock})


def another_supplier(manifest: Manifest, supplier: str, instead: str = "") -> InputError:
    """Return the error for a lake whose sweep used a supplier other than `supplier`."""
    return InputError(
        f"This lake's sweep {manifest.sweep_id} used the supplier {manifest.supplier}; the settings name {supplier}.",
        kept="The lake is unchanged.",
        hint="Use the settings of that sweep (NIGHTAUDIT_BASE_URL), or another lake (NIGHTAUDIT_LAKE)." + instead,
    )


def what_else(sweep_id: str, *, has_landed: bool) -> str:
    """Return what to do about an unfinished sweep whose supplier is not the one in the settings."""
    if has_landed:
        return f"Abandon its remaining searches with: nightaudit resume --close {sweep_id}"
    return "None of its answers has landed; replace it with: nightaudit sweep"
