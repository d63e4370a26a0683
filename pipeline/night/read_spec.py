"""The spec of a night: from the settings, or of the lake's demo, with its properties resolved."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import msgspec

from pipeline.domain.analysis import Analysis
from pipeline.domain.errors import InputError, SettingsError, SpecError
from pipeline.lake import Lake
from pipeline.lake.user_query import Bounds, user_query
from pipeline.plan.plan import passed_check_ins
from pipeline.settings import Settings
from pipeline.spec import SAMPLE_SPEC, SweepSpec, read_spec, resolve_properties, resolve_watched

_SPEC = "demo/sweep.toml"
_STORY = "demo/story.json"


class _Story(msgspec.Struct):
    nights: int
    what_if_markup_pct: float | None = None


def mark_as_demo(lake: Lake, spec: str, nights: int, what_if_markup_pct: float | None = None) -> Path:
    """Mark a lake as that of a demo, and return the file of its spec."""
    lake.put(_SPEC, spec.encode())
    lake.put(_STORY, msgspec.json.encode(_Story(nights, what_if_markup_pct)))
    return lake.local(_SPEC)


def as_in_its_demo(lake: Lake, analysis: Analysis) -> Analysis:
    """Return what a night compares with, with the mark-up of the lake's demo unless one is set.

    Without it, the first night after the demo would end the findings that rest on it.
    """
    if analysis.what_if_markup_pct is not None:
        return analysis
    return replace(analysis, what_if_markup_pct=_story_of(lake).what_if_markup_pct)


def demo_spec(settings: Settings) -> Path | None:
    """Return the spec of a demo's lake; None for another lake, or if a supplier is set."""
    if not settings.is_simulated:
        return None
    file = Lake(settings.lake).local(_SPEC)
    return file if file.exists() else None


def story_nights(lake: Lake) -> int:
    """Return the length in nights of the story in this lake's sandbox; 0: it has none."""
    return _story_of(lake).nights


def _story_of(lake: Lake) -> _Story:
    try:
        return msgspec.json.decode(lake.get(_STORY), type=_Story)
    except FileNotFoundError:
        return _Story(0)


logger = logging.getLogger(__name__)


def read_spec_of(settings: Settings, snapshot_date: date) -> tuple[SweepSpec, tuple[int, ...]]:
    """Read the spec that the settings name, and resolve its properties.

    Raises SettingsError if a real supplier is set without a spec, and SpecError for a spec or a property source that
    cannot be used.
    """
    path = settings.spec or demo_spec(settings)
    if path is None:
        if not settings.is_simulated:
            raise SettingsError(
                "No sweep spec is set (NIGHTAUDIT_SPEC), and the sample spec names properties of the sandbox.",
                hint=f"Write a spec for your properties; {SAMPLE_SPEC} shows every key.",
            )
        path = SAMPLE_SPEC
    spec = _only_markets(read_spec(path, snapshot_date), settings.markets)
    if passed := passed_check_ins(spec.stays, snapshot_date):
        logger.warning(
            "%s: these check-in dates have passed and are no longer swept: %s",
            path,
            ", ".join(day.isoformat() for day in passed),
        )
    _warn_of_converted_reference(spec, settings.reference_market)
    ids = resolve_properties(
        spec.properties,
        Path(path).parent,
        resolve_query=_query_resolver(settings),
        resolve_sandbox=_sandbox_resolver(settings) if settings.is_simulated else None,
    )
    _refuse_strangers_on_watch_list(spec, Path(path).parent, ids)
    return spec, ids[: settings.property_limit]


def spec_name(settings: Settings) -> str:
    """Return what a night's spec is called: its file's name, `demo`, or `sample`."""
    if settings.spec is not None:
        return settings.spec.stem
    return "sample" if demo_spec(settings) is None else "demo"


def _refuse_strangers_on_watch_list(spec: SweepSpec, folder: Path, ids: Iterable[int]) -> None:
    """Raise SpecError if it names a property that the spec does not have, whatever the night is limited to."""
    if spec.detail is None:
        return
    if strangers := sorted(set(resolve_watched(spec.detail, folder)).difference(ids)):
        raise SpecError(
            f"The watch list of the sweep spec (detail) names {strangers[0]}, which is not one of its properties.",
            hint="Add it to [properties], or remove it from the list.",
        )


def _only_markets(spec: SweepSpec, markets: tuple[str, ...] | None) -> SweepSpec:
    """Return the spec with only some of its markets, in its order. Raises InputError for any other market."""
    if not markets:
        return spec
    if strange := [market for market in markets if market not in spec.ask.markets]:
        raise InputError(
            f"The sweep spec does not include {', '.join(strange)}; its markets are {', '.join(spec.ask.markets)}.",
            kept="Nothing was started.",
            hint="Choose one of these, or add it to the spec.",
        )
    chosen = tuple(market for market in spec.ask.markets if market in markets)
    currencies = {market: value for market, value in spec.ask.currency_by_market.items() if market in chosen}
    ask = spec.ask.model_copy(update={"markets": chosen, "currency_by_market": currencies})
    return spec.model_copy(update={"ask": ask})


def _warn_of_converted_reference(spec: SweepSpec, reference: str | None) -> None:
    """Warn if the reference market of the settings shares no currency with another market."""
    if reference not in spec.ask.markets:
        return
    others = {name for market in spec.ask.markets if market != reference for name in spec.ask.currencies_of(market)}
    own = spec.ask.currencies_of(reference)
    if others and not others.intersection(own):
        logger.warning(
            "The reference market %s (NIGHTAUDIT_REFERENCE_MARKET) shares no currency with another market, so every "
            "price is compared at an exchange rate: small differences are not found, and a moved rate can hide which "
            "market deviates. Request it in a second currency too, for example %s = [%s] in currency_by_market.",
            reference,
            reference,
            ", ".join(f'"{name}"' for name in (*own, sorted(map(str, others))[0])),
        )


def spec_folder(settings: Settings) -> Path:
    """Return the folder at which relative files of the spec start."""
    return Path(settings.spec or SAMPLE_SPEC).parent


def refuse_before_making(settings: Settings, lake: Lake, now: datetime) -> None:
    """Read the spec while there is no lake yet, so that a mistake in it creates none. Raises SpecError."""
    if not lake.root.exists():
        read_spec_of(settings, now.date())


def _sandbox_resolver(settings: Settings) -> Callable[[int], Iterable[int]]:
    from pipeline.sandbox.world.identifiers import property_ids

    return lambda wanted: property_ids(settings.sandbox_seed, settings.sandbox_properties)[:wanted]


def _query_resolver(settings: Settings) -> Callable[[str], Iterable[int]] | None:
    file = Lake(settings.lake).published_file
    if not file.exists():
        return None

    def resolve(query: str) -> Iterable[int]:
        with user_query(file, query, Bounds.of(settings)) as answer:
            yield from (row[0] for row in answer.rows())

    return resolve
