"""What offers on sale cost against each other: expected rows by relation, as set logic over one frame of offers.

Written from the analytics of the domain. Totals are whole ten-thousandths, so that sums and differences are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl
from history import CELL, History, Row

ROOM_ONLY, SELF_CATERING, OTHER = {14}, {15}, {21, 22}
FAMILIES = {
    "breakfast": {3, 4, 6, 7, 19, 100, 101, 102, 103, 104},
    "all inclusive": {1, 105, 106, 107, 108, 109, 110},
    "full board": {10, 111},
    "half board": {12, 112, 113, 114, 115},
    "room only": ROOM_ONLY,
    "self catering": SELF_CATERING,
}
FAMILY_OF = {board: family for family, boards in FAMILIES.items() for board in boards}
STAY = ("source", "property_id", "market", "product_type", "check_in", "nights", "party", "currency_asked", "sweep_id")
PRODUCT = ("room_id", "board_id", "policy", "currency")
_SCHEMA = {
    "source": pl.String, "property_id": pl.Int64, "market": pl.String, "product_type": pl.String, "check_in": pl.Date,
    "nights": pl.Int64, "party": pl.String, "currency_asked": pl.String, "sweep_id": pl.String, "search_id": pl.Int64,
    "offer_no": pl.Int64, "room_stay_id": pl.Int64, "room_id": pl.Int64, "board_id": pl.Int64, "policy": pl.String,
    "currency": pl.String, "promotion": pl.String, "refundability": pl.String, "is_whole": pl.Boolean,
    "total": pl.Int64, "pre_promo_total": pl.Int64, "floor": pl.Int64, "included_charges": pl.Int64,
    "excluded_charges": pl.Int64, "resort_fee": pl.Int64, "child_resort_fee": pl.Int64, "city_taxes": pl.Int64,
    "hotel_service_fee": pl.Int64, "discount_pct": pl.Float64,
}  # fmt: skip
MINOR_UNITS = 100
"""Ten-thousandths in the smallest coin of all currencies that the lake asks for."""
FEES = ("resort_fee", "child_resort_fee", "city_taxes", "hotel_service_fee")


def taken_off_by_promotions(row: Row) -> int:
    """Return what promotions take off a price that states one before them: no price is more exact than a coin."""
    taken_off: int = row["pre_promo_total"] - row["total"]
    return 0 if abs(taken_off) <= MINOR_UNITS else taken_off


def frame(history: History) -> pl.DataFrame:
    """Return the offers on sale, with the family of the board, the requested room and how many there are."""
    return frame_of(history.on_sale())


def frame_of(offers: Iterable[Row]) -> pl.DataFrame:
    """Return offers with the family of the board, the requested room and how many there are."""
    rows = [{name: row[name] for name in _SCHEMA} for row in offers]
    boards = pl.col("board_id").replace_strict(FAMILY_OF, default="other", return_dtype=pl.String)
    return pl.DataFrame(rows, schema=_SCHEMA).with_columns(
        family=boards.fill_null("other"),
        room_no=pl.col("room_stay_id").fill_null(0),
        rooms=pl.col("party").str.count_matches(r"\+") + 1,
        priced=pl.col("total") > 0,
    )


def comparable(offers: pl.DataFrame) -> pl.DataFrame:
    """Return what can be paired with the very same offer: priced, of a known currency, room and board, all read."""
    return offers.filter(
        pl.col("priced")
        & pl.col("currency").is_not_null()
        & pl.col("room_id").is_not_null()
        & pl.col("board_id").is_not_null()
        & (pl.col("is_whole") | (pl.col("source") == "multi"))
    )


def pct(part: pl.Expr, base: pl.Expr) -> pl.Expr:
    """Return 100 x part / base."""
    return 100 * part / base


def floor_headroom(offers: pl.DataFrame) -> pl.DataFrame:
    """`mart.floor_headroom`: M/T - 1, hotel-only; a floor of 0 is none."""
    floor = pl.when(pl.col("floor") > 0).then("floor")
    return offers.filter(pl.col("product_type") == "Hotel").select(
        *STAY, "room_stay_id", *PRODUCT, "total",
        floor=floor,
        headroom=pl.when("priced").then(floor - pl.col("total")),
        headroom_pct=pl.when("priced").then(pct(floor - pl.col("total"), pl.col("total"))),
    )  # fmt: skip


def floor_coverage(offers: pl.DataFrame) -> pl.DataFrame:
    """`report.floor_coverage`: the share of hotel-only offers with a floor, by market and endpoint."""
    return (
        floor_headroom(offers)
        .group_by("source", "market")
        .agg(
            offers=pl.len(),
            offers_with_floor=pl.col("floor").count(),
            floor_above_total=(pl.col("headroom") > 0).sum(),
            coverage_pct=pct(pl.col("floor").count(), pl.len()),
            median_headroom_pct=pl.col("headroom_pct").median(),
            highest_headroom_pct=pl.col("headroom_pct").max(),
        )
    )


def floor_dispersion(offers: pl.DataFrame) -> pl.DataFrame:
    """`mart.floor_dispersion` in one currency: (max - min) / min of the floors of markets."""
    same = ("source", "property_id", "sweep_id", "check_in", "nights", "party", "room_no", *PRODUCT)
    return (
        comparable(offers)
        .filter((pl.col("product_type") == "Hotel") & (pl.col("floor") > 0))
        .group_by(same)
        .agg(
            markets=pl.col("market").n_unique(),
            lowest_floor=pl.col("floor").min(),
            highest_floor=pl.col("floor").max(),
        )
        .filter(pl.col("markets") > 1)
        .with_columns(dispersion_pct=pct(pl.col("highest_floor") - pl.col("lowest_floor"), pl.col("lowest_floor")))
    )


def package_discount(offers: pl.DataFrame) -> pl.DataFrame:
    """`mart.package_discount`: 1 - T_package / T_hotel, and what a package lies below the hotel-only floor."""
    same = (*[name for name in STAY if name != "product_type"], "room_no", *PRODUCT)
    sides = comparable(offers)
    hotel, package = (
        sides.filter(pl.col("product_type") == kind).select(*same, "total", "floor") for kind in ("Hotel", "Package")
    )
    leak = pl.when(pl.col("floor") > pl.col("total_right")).then(pl.col("floor") - pl.col("total_right"))
    return hotel.join(package, on=same, nulls_equal=True).select(
        *same,
        hotel_total="total",
        package_total="total_right",
        discount=pl.col("total") - pl.col("total_right"),
        discount_pct=100 * (1 - pl.col("total_right") / pl.col("total")),
        leak=leak,
        leak_pct=pct(leak, pl.col("floor")),
    )


def refundable_premium(offers: pl.DataFrame) -> pl.DataFrame:
    """`mart.refundable_premium`: T_ref / T_nonref - 1 of the same room and board."""
    same = (*STAY, "room_stay_id", "room_id", "board_id", "currency")
    total = pl.col("total")
    refundability = pl.col("refundability")
    return (
        comparable(offers)
        .filter("is_whole")
        .group_by(same)
        .agg(
            refundable_total=total.filter(refundability == "refundable").min(),
            non_refundable_total=total.filter(refundability == "non_refundable").min(),
        )
        .drop_nulls(["refundable_total", "non_refundable_total"])
        .with_columns(
            premium=pl.col("refundable_total") - pl.col("non_refundable_total"),
            premium_pct=100 * (pl.col("refundable_total") / pl.col("non_refundable_total") - 1),
        )
    )


def read_in_full(offers: pl.DataFrame) -> pl.DataFrame:
    """Leave out details of which a part could not be read: it may have been a cheaper product of the same kind."""
    return offers.filter(pl.col("is_whole") | (pl.col("source") == "multi"))


def board_premium(offers: pl.DataFrame) -> pl.DataFrame:
    """`mart.board_premium`: (T_board - T_room_only) / (N x guests), of parties of one room."""
    offers = read_in_full(offers)
    same = (*STAY, "room_id", "policy", "currency")
    one_room = offers.filter(pl.col("priced") & (pl.col("rooms") == 1))
    alone = one_room.filter(pl.col("family") == "room only").group_by(same).agg(room_only_total=pl.col("total").min())
    premium = pl.col("total") - pl.col("room_only_total")
    # Of what an answer does not say, a room, a policy or a currency, nothing is known to be the same.
    return (
        one_room.filter(~pl.col("family").is_in(["room only", "self catering", "other"]))
        .join(alone.drop_nulls(["room_id", "currency"]), on=same, how="left", nulls_equal=True)
        .select(
            *STAY, "room_stay_id", *PRODUCT, "total", "room_only_total",
            premium=premium,
            premium_per_guest_night=(premium / (pl.col("nights") * guests())),
            premium_pct=pct(premium, pl.col("room_only_total")),
        )
    )  # fmt: skip


def guests() -> pl.Expr:
    """Return how many guests a party of one room has: its adults, and its children by their ages."""
    return pl.col("party").str.extract(r"^(\d)").cast(pl.Int64) + pl.col("party").str.count_matches(r"[c-]\d+")


def occupancy_supplement(offers: pl.DataFrame) -> pl.DataFrame:
    """`mart.occupancy_supplement`: two adults against one, if both were requested and on sale."""
    same = tuple(name for name in (*STAY, *PRODUCT) if name != "party")
    stay = tuple(name for name in STAY if name not in {"party", "source", "currency_asked"})
    smaller = offers.filter(pl.col("party") == "1")
    base = (
        read_in_full(smaller)
        .filter("priced")
        .drop_nulls(["room_id", "board_id", "currency"])
        .select(*same, base_total="total")
    )
    supplement = pl.col("total") - pl.col("base_total")
    return (
        read_in_full(offers)
        .filter(pl.col("priced") & (pl.col("party") == "2"))
        .join(smaller.select(stay).unique(), on=stay, how="semi")
        .join(base, on=same, how="left", nulls_equal=True)
        .select(
            *STAY, "room_stay_id", *PRODUCT, "total", "base_total",
            supplement=supplement,
            supplement_pct=pct(supplement, pl.col("base_total")),
        )
    )  # fmt: skip


def multi_room_premium(offers: pl.DataFrame) -> pl.DataFrame:
    """`mart.multi_room_premium`: a party of `2+1` against `2` and `1` asked for one by one."""
    offers = read_in_full(offers)
    same = tuple(name for name in (*STAY, *PRODUCT) if name != "party")
    several = offers.filter(pl.col("priced") & (pl.col("rooms") > 1) & pl.col("room_id").is_not_null()).with_columns(
        alone=pl.col("party").str.split("+").list.get(pl.col("room_stay_id"), null_on_oob=True)
    )
    single = (
        offers.filter(pl.col("priced") & (pl.col("rooms") == 1))
        .drop_nulls(["room_id", "board_id", "currency"])
        .select(*same, alone="party", single_total="total")
    )
    rooms = pl.col("rooms").first()
    return (
        several.join(single, on=(*same, "alone"), how="left", nulls_equal=True)
        .group_by(*STAY, *PRODUCT)
        .agg(
            rooms=rooms,
            rooms_offered=pl.col("room_stay_id").drop_nulls().n_unique(),
            rooms_found=pl.col("single_total").count(),
            total=pl.when(pl.col("room_stay_id").drop_nulls().n_unique() == rooms).then(pl.col("total").sum()),
            singles_total=pl.when(pl.col("single_total").count() == rooms).then(pl.col("single_total").sum()),
        )
        .with_columns(premium=pl.col("total") - pl.col("singles_total"))
    )


def stay_length(offers: pl.DataFrame) -> pl.DataFrame:
    """`mart.stay_length`: 1 - T_2 / the sum of the two one-night totals."""
    offers = read_in_full(offers)
    same = tuple(name for name in (*STAY, "room_no", *PRODUCT) if name not in {"nights", "check_in"})
    night = (
        offers.filter(pl.col("nights") == 1)
        .drop_nulls(["room_id", "board_id", "currency"])
        .select(*same, check_in="check_in", single="total")
    )
    first = night.rename({"single": "first"})
    second = night.select(*same, check_in=pl.col("check_in") - pl.duration(days=1), second="single")
    on = (*same, "check_in")
    sum_of_nights = pl.col("first") + pl.col("second")
    return (
        offers.filter((pl.col("nights") == 2) & pl.col("priced"))
        .join(first, on=on, how="left", nulls_equal=True)
        .join(second, on=on, how="left", nulls_equal=True)
        .select(
            *STAY, "room_stay_id", *PRODUCT, "total",
            nights_found=pl.col("first").is_not_null().cast(pl.Int64) + pl.col("second").is_not_null(),
            nights_total=sum_of_nights,
            saving=sum_of_nights - pl.col("total"),
            discount_pct_of_nights=100 * (1 - pl.col("total") / sum_of_nights),
        )
    )  # fmt: skip


def stay_price(offers: pl.DataFrame) -> pl.DataFrame:
    """`report.stay_price`: medians of the four measures by source, market and product type."""
    measures: Sequence[tuple[str | pl.Expr, pl.DataFrame, pl.Expr]] = (
        ("stay_length_discount", stay_length(offers), pl.col("discount_pct_of_nights")),
        ("adult_supplement", occupancy_supplement(offers), pl.col("supplement_pct")),
        (
            "multi_room_premium",
            multi_room_premium(offers),
            pct(pl.col("premium"), pl.col("singles_total")),
        ),
        (
            pl.lit("premium of ")
            + pl.col("board_id").replace_strict(FAMILY_OF, default="other", return_dtype=pl.String),
            board_premium(offers),
            pl.col("premium_pct"),
        ),
    )
    reported = [
        rows.select(
            "source", "market", "product_type", measure=pl.lit(name) if isinstance(name, str) else name, pct=size
        )
        for name, rows, size in measures
    ]
    size = pl.col("pct")
    return (
        pl.concat(reported)
        .group_by("measure", "source", "market", "product_type")
        .agg(planned=pl.len(), comparable=size.count(), above=(size > 0).sum(), median_pct=size.median().round(6))
        .select(
            "measure", "source", "market", "product_type", "planned", "comparable", "median_pct",
            share_above_0=pl.when(pl.col("comparable") > 0).then(pl.col("above") / pl.col("comparable")),
        )
    )  # fmt: skip


def all_in_price(offers: pl.DataFrame) -> pl.DataFrame:
    """`mart.all_in_price`: T + the four named fees, which are due at the property; drip = EC / (T + EC).

    What is left of EC is optional, unless rounding each stated fee to the smallest coin may have caused it.
    """
    stated = pl.sum_horizontal(pl.col(fee).is_not_null().cast(pl.Int64) for fee in FEES)
    mandatory = (
        pl.when(stated > 0)
        .then(pl.sum_horizontal(pl.col(fee).fill_null(0) for fee in FEES))
        .when(pl.col("excluded_charges") == 0)
        .then(0)
    )
    left = pl.col("excluded_charges") - pl.col("mandatory_charges")
    is_left = left > MINOR_UNITS * pl.col("fees_stated")
    return (
        offers.filter(pl.col("source") == "detail")
        .with_columns(fees_stated=stated, mandatory_charges=mandatory)
        .with_columns(all_in_total=pl.col("total") + pl.col("mandatory_charges"))
        .select(
            *STAY, "room_stay_id", *PRODUCT, "total", "fees_stated", "mandatory_charges", "all_in_total",
            optional_charges=pl.when(is_left).then(left).when(left.is_not_null()).then(0),
            drip_ratio=pl.col("excluded_charges") / (pl.col("total") + pl.col("excluded_charges")),
            mandatory_drip_ratio=pl.col("mandatory_charges") / pl.col("all_in_total"),
            included_ratio=pl.col("included_charges") / pl.col("total"),
        )
    )  # fmt: skip


def list_against_detail(offers: pl.DataFrame) -> pl.DataFrame:
    """`mart.offer_truth` of list and detail: the cheapest detail product for the room, board and policy of a list."""
    same = tuple(name for name in (*CELL, "room_stay_id", *PRODUCT) if name != "source")
    sides = [offers.filter(pl.col("source") == source) for source in ("multi", "detail")]
    listed, looked_at = (side.select(*same, "total", "is_whole") for side in sides)
    return listed.join(looked_at, on=same, nulls_equal=True).select(
        *same,
        list_total="total",
        detail_total="total_right",
        detail_above_list=pl.when("is_whole_right").then(pl.col("total_right") - pl.col("total")),
    )
