"""The sweep spec: what a sweep asks for, validated and frozen."""

import json
from itertools import pairwise
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pipeline.domain.errors import SpecError
from pipeline.domain.search import MAX_PROPERTIES_PER_SEARCH, Operation, ProductType
from pipeline.spec.values import (
    Anchor,
    AnchorName,
    CheckIns,
    Currencies,
    CurrenciesByMarket,
    Days,
    DetailRule,
    DetailRules,
    Markets,
    NightsList,
    Operations,
    Parties,
    ProductTypes,
    PropertyIds,
    WatchedIds,
    at_item,
)


class SpecTable(BaseModel):
    """A table of the spec. The text below a field is its meaning in the table of keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Properties(SpecTable):
    """Where the property ids come from: exactly one source."""

    ids: PropertyIds | None = None
    """List of property ids."""
    file: Annotated[str, Field(strict=True, min_length=1)] | None = None
    """File with one id per line, or a CSV file with a column `property_id`; # starts a comment. A relative path starts
    at the spec's folder."""
    query: Annotated[str, Field(strict=True, min_length=1)] | None = None
    """SQL query over the last published night; its first column holds the ids."""
    sandbox: Annotated[int, Field(strict=True, ge=1)] | None = None
    """Number of the sandbox's properties to sweep; only with the sandbox."""

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            found = f"{' and '.join(given)} are given" if given else "none is given"
            raise ValueError(f"give exactly one of {', '.join(type(self).model_fields)}: {found}")
        return self


class Horizon(SpecTable):
    """A range of lead days, and its step."""

    to_days: Days
    """Last lead day of this range; lead day 1 is the day after the snapshot."""
    every_days: Days = 1
    """Step of the range: every day (1), every third day (3), one day per week (7)."""


class Stays(SpecTable):
    """The stays to sweep: every check-in date combined with every number of nights."""

    nights: NightsList
    """Lengths of stay, in nights."""
    horizon: tuple[Horizon, ...] = ()
    """Ranges of lead days; each starts where the previous one ends."""
    anchor: AnchorName = Anchor.LEAD_DAYS
    """`lead_days`: ranges count days from the snapshot, so the check-in dates move with every night. `calendar`: the
    check-in dates stay the same from night to night."""
    check_in: CheckIns | None = None
    """Fixed check-in dates, alone or in addition to horizons. Past dates are dropped."""

    @model_validator(mode="after")
    def _asks_about_some_day(self) -> Self:
        if not self.horizon and not self.check_in:
            raise ValueError("give at least one [[stays.horizon]] or the list check_in")
        begins_after = (0, *(horizon.to_days for horizon in self.horizon))
        for index, (before, to_days) in enumerate(pairwise(begins_after)):
            every_days = self.horizon[index].every_days
            if to_days <= before:
                raise at_item(index, f"to_days {to_days} is not after the {before} of the horizon before it")
            if every_days > to_days - before:
                raise at_item(
                    index, f"every_days {every_days} is more than the {to_days - before} days that this horizon spans"
                )
        return self


class Ask(SpecTable):
    """What is requested for each property and stay."""

    markets: Markets
    """Market codes, or the word "all" for all of them."""
    parties: Parties
    """Guests: `2`, `2c5-9` for 2 adults with children aged 5 and 9, rooms joined by +."""
    product_types: ProductTypes = (ProductType.HOTEL,)
    """`Hotel`, `Package` or both."""
    currencies: Currencies | None = None
    """Currencies to request; each is swept. Omitted: none is requested, and the supplier chooses."""
    currency_by_market: CurrenciesByMarket = {}
    """Different currencies for some markets: `{ GB = "GBP", US = ["USD", "EUR"] }`."""
    operations: Operations = (Operation.MULTI,)
    """`multi` (cheapest products, many properties per search), `single` (all products) or both."""
    single_properties: Annotated[int, Field(strict=True, ge=1)] | None = None
    """Number of properties for `single`: those with the lowest ids. Omitted: all."""
    batch: Annotated[int, Field(strict=True, ge=1, le=MAX_PROPERTIES_PER_SEARCH)] = MAX_PROPERTIES_PER_SEARCH
    """Properties per `multi` search."""

    @model_validator(mode="after")
    def _keys_agree(self) -> Self:
        if unasked := [market for market in self.currency_by_market if market not in self.markets]:
            raise ValueError(f"currency_by_market names markets that `markets` does not: {', '.join(unasked)}")
        if self.single_properties and Operation.SINGLE not in self.operations:
            raise ValueError('single_properties is given, but operations does not name "single"')
        return self

    def currencies_of(self, market: str) -> tuple[str | None, ...]:
        """Return the currencies requested in `market`; None: none is requested."""
        return self.currency_by_market.get(market) or self.currencies or (None,)


class Detail(SpecTable):
    """The properties for `single` searches, chosen by rules from the last published night."""

    choose: DetailRules
    """Rules that choose properties, the most important first: `watch` (on the watch list), `changed` (price, floor or
    offers changed last night), `stale` (no recent detail answer), `available` (had offers)."""
    budget: Annotated[int, Field(strict=True, ge=1)]
    """Maximum `single` requests per night. A property takes one per stay, party, market, product type and currency."""
    stale_after_days: Days = 7
    """Days without a detail answer after which a property is `stale`."""
    watch: WatchedIds | None = None
    """Property ids for the rule `watch`; may be empty."""
    watch_file: Annotated[str, Field(strict=True, min_length=1)] | None = None
    """File with the ids for the rule `watch`, instead of the list; same format as `properties.file`."""

    @model_validator(mode="after")
    def _keys_agree(self) -> Self:
        if self.watch is not None and self.watch_file is not None:
            raise ValueError("give watch or watch_file, not both")
        if (DetailRule.WATCH in self.choose) != (self.watch is not None or self.watch_file is not None):
            raise ValueError('give the list `watch`, or `watch_file`, together with the rule "watch", or neither')
        return self


class SweepSpec(SpecTable):
    """What a sweep asks for: every combination of its independent parts."""

    properties: Properties
    """Where the property ids come from: exactly one of its keys."""
    stays: Stays
    """The stays to sweep."""
    ask: Ask
    """The markets, guests, product types, currencies and operations to sweep."""
    detail: Detail | None = None
    """The properties for `single` searches. Omitted: see ask.single_properties."""

    @model_validator(mode="after")
    def _detail_fits(self) -> Self:
        if self.detail is not None and Operation.SINGLE not in self.ask.operations:
            raise ValueError('[detail] is given, but ask.operations does not name "single"')
        if self.detail is not None and self.ask.single_properties is not None:
            raise ValueError("give [detail] or ask.single_properties, not both")
        return self

    def canonical_json(self) -> bytes:
        """Return the spec as JSON whose bytes are the same for equal specs."""
        content = self.model_dump(mode="json", exclude_none=True)
        return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

    @classmethod
    def from_canonical(cls, canonical: bytes | str) -> Self:
        """Return the spec that `canonical_json` wrote. Raises SpecError for anything else."""
        try:
            return cls.model_validate(json.loads(canonical))
        except (ValidationError, ValueError) as error:
            raise SpecError(
                f"The stored sweep spec cannot be read: {error}",
                hint="It was written by another version or has been altered. Start a new sweep.",
            ) from None
