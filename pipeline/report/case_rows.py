"""Rows of `report.finding_case`: those that ended, and those that findings belong to."""

import polars as pl


def ended_of(tonight: pl.DataFrame) -> pl.DataFrame:
    """Return the closed ones of a night's cases, without those covered by a wider case of that night.

    The supplier's case ends with its last market: until then, each market ends for itself.
    """
    ordered = tonight.sort("rule", "scope", "market", "property_id", nulls_last=True, maintain_order=True)
    pair = ["rule", "base_currency", "currency"]
    of_market, of_pair = pl.struct("rule", "market"), pl.struct(pair)
    is_closed, scope = pl.col("status") == "closed", pl.col("scope")
    wide = ordered.filter(scope == "market").select(of_market.alias("it"))["it"].implode()
    standing = ordered.filter((scope == "market") & ~is_closed).select(of_pair.alias("it"))["it"].implode()
    is_over = is_closed & (scope == "supplier") & ~of_pair.is_in(standing)
    widest = ordered.filter(is_over).select(of_pair.alias("it"))["it"].implode()
    is_covered = (
        ((scope == "property") & of_market.is_in(wide))
        | ((scope == "market") & of_pair.is_in(widest))
        | ((scope == "supplier") & ~of_pair.is_in(widest))
    )
    return ordered.filter(is_closed & ~is_covered)


def with_opening(cases: pl.DataFrame) -> pl.DataFrame:
    """Return cases with `opened_at`, which files of earlier versions lack."""
    return cases if "opened_at" in cases.columns else cases.with_columns(opened_at="first_seen_at")


def with_case_ids(flags: pl.DataFrame, unclosed: pl.DataFrame) -> pl.DataFrame:
    """Return flags with `case_id`, the open case that counts them; NULL: none."""
    # Only a mark-up has a pair of currencies.
    is_pair = pl.col("fx").struct.field("from_currency").is_not_null() & (pl.col("rule") == "fx_markup")
    keys = {
        "case_rule": pl.col("rule"),
        "case_property": pl.col("property_id"),
        "case_market": pl.col("market"),
        "case_base": pl.when(is_pair).then(pl.col("fx").struct.field("from_currency")),
        "case_currency": pl.when(is_pair).then(pl.col("fx").struct.field("to_currency")),
    }
    columns = dict(zip(("rule", "property_id", "market", "base_currency", "currency"), keys, strict=True))
    known = unclosed.select(
        "scope",
        pl.col(*columns).name.map(columns.__getitem__),
        pl.coalesce("part_of_case_id", "case_id").alias("of"),
    )
    # Its property's in its market; a pair's of the market; one that a property has in several markets.
    is_own = pl.col("scope") == "property"
    kinds = {
        tuple(keys): is_own,
        ("case_rule", "case_market", "case_base", "case_currency"): ~is_own & pl.col("case_base").is_not_null(),
        ("case_rule", "case_property"): is_own & pl.col("case_market").is_null(),
    }
    found = flags.with_columns(**keys, case_id=pl.lit(None, pl.String))
    for on, is_it in kinds.items():
        cases = known.filter(is_it).select(*on, "of")
        found = found.join(cases, on=on, how="left", nulls_equal=True, maintain_order="left")
        found = found.with_columns(pl.coalesce("case_id", "of").alias("case_id")).drop("of")
    return found.drop(*keys)
