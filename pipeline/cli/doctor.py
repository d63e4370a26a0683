"""`nightaudit doctor`: what is wrong, and how to fix it."""

import importlib.metadata
import platform
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from pydantic import SecretStr
from rich.console import Console
from rich.text import Text

from pipeline.cli.given import settings_with
from pipeline.cli.terminal import Terminal, write_json_lines
from pipeline.cli.verify import refuse_damages, reported
from pipeline.domain.addresses import host_and_port, is_encrypted, is_in_the_clear
from pipeline.domain.errors import NightauditError
from pipeline.domain.search import Operation, ProductType, Search
from pipeline.domain.servers import place_of_store
from pipeline.domain.stay import Party, Stay
from pipeline.lake import Lake
from pipeline.lake.published_paths import refuse_moved
from pipeline.lake.pulled import pulled_from
from pipeline.night.latest import refuse_earlier
from pipeline.night.read_spec import demo_spec, read_spec_of
from pipeline.night.senders import SenderProbe, store_of_workers, why_alone
from pipeline.night.supplier import open_client
from pipeline.night.verify import verify
from pipeline.process.cluster_pool import open_pool, size_of
from pipeline.process.event_loop import run_in_loop
from pipeline.publish.refresh import is_behind
from pipeline.settings import PREFIX, Settings
from pipeline.supplier.answer import Failure
from pipeline.supplier.connection import proxy_for
from pipeline.supplier.outcomes import outcome_of
from pipeline.supplier.rate_mark import marked
from pipeline.supplier.requests import request_for

_LIBRARIES = ("prefect", "polars", "duckdb", "deltalake", "httpx", "pydantic", "msgspec", "pyarrow")
_LITTLE_SPACE_BYTES = 5_000_000_000
# Far enough ahead that most properties sell it.
_PROBE_LEAD_DAYS = 30


class ChecksFailed(NightauditError):
    """At least one check of the doctor failed."""


@dataclass(slots=True)
class _Examination:
    console: Console
    is_json: bool = False
    failed: int = 0

    def check(self, name: str, look: Callable[[], str]) -> None:
        try:
            found = look()
        except NightauditError as error:
            self.failed += 1
            is_passed, found, hint = False, error.message, error.hint
        else:
            is_passed, hint = True, ""
        if self.is_json:
            write_json_lines([{"check": name, "is_passed": is_passed, "found": found, "hint": hint or None}])
            return
        mark = ("✓ ", "green") if is_passed else ("✗ ", "red")
        self.console.print(Text.assemble(mark, (name, "bold"), f": {found}"))
        if hint:
            self.console.print(Text(f"    {hint}", style="cyan"))


def doctor(spec: Path | None, form: str) -> None:
    """Run all checks; as JSON, one per line. Raises ChecksFailed (exit code 1) if one fails."""
    console = Terminal(soft_wrap=True)
    settings = settings_with(spec)
    examination = _Examination(console, form == "json")
    examination.check("versions", _versions)
    examination.check("settings", lambda: _settings(settings))
    examination.check("connection", lambda: _connection(settings))
    examination.check("limits", lambda: _limits(settings))
    examination.check("lake", lambda: _lake(settings))
    examination.check("files", lambda: _files(settings))
    if settings.spread_over is not None:
        examination.check("cluster", lambda: _cluster(settings))
    examination.check("spec", lambda: _spec(settings))
    examination.check("token and probe search", lambda: run_in_loop(lambda: _probe(settings)))
    if examination.failed:
        lines = 'with `"is_passed": false`' if examination.is_json else "marked ✗"
        raise ChecksFailed(f"{examination.failed} of the checks failed.", hint=f"See the lines {lines} above.")
    if form != "json":
        console.print(Text("All checks passed.", style="green"))


def _versions() -> str:
    names = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _LIBRARIES)
    return f"nightaudit {importlib.metadata.version('nightaudit')}, Python {platform.python_version()}, {names}"


def _settings(settings: Settings) -> str:
    values = ((name, getattr(settings, name)) for name in sorted(settings.model_fields_set))
    shown = [f"{PREFIX}{name.upper()}={'(set)' if isinstance(it, SecretStr) else it}" for name, it in values]
    supplier = "the bundled sandbox (simulated data)" if settings.is_simulated else settings.base_url
    return f"supplier is {supplier}; " + (", ".join(shown) or "all settings at their defaults")


def _connection(settings: Settings) -> str:
    """Return, for each address, whether traffic to it can be read in transit, and its proxy."""
    if settings.base_url is None:
        ways = ["to this machine only"]
    else:
        ways = []
        for address in dict.fromkeys((settings.base_url, settings.auth_url or settings.base_url)):
            proxy = proxy_for(address)
            through = f", through the proxy {host_and_port(proxy).rpartition('@')[2]}" if proxy else ""
            ways.append(f"{address}: {_way(address, 'ALLOW_CLEAR_TEXT', 'secret, token and prices')}{through}")
    if settings.rate_store is not None:
        store = settings.rate_store.get_secret_value()
        ways.append(f"rate store {place_of_store(store)}: {_way(store, 'RATE_STORE_CLEAR_TEXT', 'its password')}")
    return "; ".join(ways)


def _way(address: str, allowed_by: str, exposed: str) -> str:
    if is_in_the_clear(address):
        return f"CLEAR TEXT, allowed by {PREFIX}{allowed_by}: {exposed} can be read in transit"
    return "encrypted, certificate must verify" if is_encrypted(address) else "to this machine only"


def _limits(settings: Settings) -> str:
    """Return the rate and the daily cap, and who shares them."""
    is_shared = settings.rate_store is not None
    shared = "of everything that names this rate store"
    pace = f"{settings.rate:g} requests per second {shared if is_shared else 'of each process'}"
    if settings.daily_calls is None:
        return f"{pace}; no daily cap"
    alone = "of everything that writes to this lake; another lake at this supplier counts its own"
    return f"{pace}; {settings.daily_calls:,} calls a day {shared if is_shared else alone}"


def _cluster(settings: Settings) -> str:
    """Return how many tasks the workers run at once, and who sends searches; opening the pool checks each worker."""
    lake = Lake(settings.lake)
    with ExitStack() as opened:
        store = store_of_workers(settings)
        probe = SenderProbe.of(settings, opened.enter_context(marked(store))) if store is not None else None
        pool = opened.enter_context(
            open_pool(settings.spread_over, lake.root, ThreadPoolExecutor, lake.carrier(lambda: ()), probe)
        )
        way = "encrypted" if (settings.cluster or "").startswith("tls") else "in clear text"
        get = "see this lake" if lake.copy is None else "fetch what they need from S3"
        alone = why_alone(settings)
        senders = f"this machine sends all searches, as {alone}" if alone else "they send the searches, at one rate"
        tasks = size_of(pool, settings.workforce)
        return f"{settings.cluster}, {way}: {tasks} tasks at once, on workers that {get}; {senders}"


def _lake(settings: Settings) -> str:
    lake = Lake(settings.lake)
    free = lake.free_bytes()
    if free < _LITTLE_SPACE_BYTES:
        raise NightauditError(
            f"{lake.root} has only {free / 1e9:.1f} GB free.", hint="See how much a night needs: nightaudit plan"
        )
    if source := pulled_from(lake.root):
        return f"{lake.root}, {free / 1e9:.0f} GB free, a copy of {source}, which has the sweeps"
    refuse_earlier(lake, settings.clock())
    return f"{lake.root}, {free / 1e9:.0f} GB free, {len(lake.sweep_ids())} sweeps"


def _files(settings: Settings) -> str:
    lake = Lake(settings.lake, may_be_damaged=True)
    found = verify(lake, is_deep=False)
    refuse_damages(lake, found)
    if lake.published_file.exists():
        refuse_moved(lake.published_file)
    # A pulled copy has no records to be compared with; the next pull updates it.
    if not pulled_from(lake.root) and is_behind(lake):
        raise NightauditError(
            "The published file does not show all that was loaded, quoted, confirmed or noted: a command was stopped, "
            "or another version wrote the file.",
            kept="Everything is recorded in the lake.",
            hint="Show it: nightaudit publish",
        )
    return reported(found, is_deep=False)


def _spec(settings: Settings) -> str:
    today = settings.clock().date()
    spec, ids = read_spec_of(settings, today)
    named = settings.spec or demo_spec(settings) or "the sample spec"
    return f"{named}: {len(ids):,} properties, {len(spec.ask.markets)} markets"


async def _probe(settings: Settings) -> str:
    today = settings.clock().date()
    spec, ids = read_spec_of(settings, today)
    stay = Stay.of(today + timedelta(days=_PROBE_LEAD_DAYS), 1)
    market = spec.ask.markets[0]
    search = Search(0, Operation.MULTI, market, ProductType.HOTEL, stay, Party.parse("2"), None, (ids[0],))
    request = request_for(search, today=today, send_rate_type=settings.send_rate_type)
    async with open_client(settings, Lake(settings.lake)) as client:
        answer = await client.ask(search.operation, request.to_wire(), attempts=1)
    took = (answer.ended_at - answer.started_at).total_seconds()
    if answer.failure is not None:
        # If the supplier was not reached, or gave no token, the search was not sent.
        is_issued = answer.failure not in {Failure.NO_TOKEN, Failure.UNREACHABLE}
        raise NightauditError(
            f"{'a token was issued, but ' if is_issued else ''}the probe search failed: {answer.failure} "
            f"{answer.failure_detail}",
            hint="If it keeps failing, ask the supplier and mention the time of this probe.",
        )
    outcome = outcome_of(answer)
    codes = f" with codes {', '.join(map(str, outcome.codes))}" if outcome.codes else ""
    # Without verified certificates there would be no token and no answer.
    seen = "; certificate verified" if settings.base_url and is_encrypted(settings.base_url) else ""
    return f"property {search.property_ids[0]}: {outcome.verdict}{codes} ({answer.http_status}) in {took:.2f} s{seen}"
