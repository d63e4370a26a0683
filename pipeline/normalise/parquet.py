"""A table of typed rows as one Parquet object, encoded to be small and quick to skip."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

# The best trade of size against speed, measured on generated nights.
_ZSTD_LEVEL = 3
_TEXT_LIKE = {
    "search_id", "searched_at", "property_id", "check_in", "nights", "room_stay_id", "board_id",
    "policy_key", "promotion_key", "available_rooms", "free_cancel_hours", "free_cancel_until", "discount_pct",
    "code", "window_hours", "penalty_pct", "penalty_nights", "start_at", "end_at", "started_at", "ended_at",
}  # fmt: skip
# Room and product ids stay plain: zstd compresses their runs, and their differences vary widely.
_DELTA = {"offer_no", "total", "pre_promo_total", "floor", "penalty_no", "promotion_no"}
# The columns by which readers skip files; statistics of all the others would take a fifth of the writing time.
_STATISTICS = {"sweep_id", "market", "search_id", "searched_at", "property_id", "check_in"}


def encode_table(table: pa.Table, note: Mapping[str, str] | None = None) -> bytes:
    """Return a table as one Parquet object, in the encodings that compress best, with `note` in its footer."""
    names = table.column_names
    delta = {name: "DELTA_BINARY_PACKED" for name in names if name in _DELTA}
    dictionary = [
        name
        for name, column in zip(names, table.columns, strict=True)
        if name in _TEXT_LIKE or pa.types.is_dictionary(column.type) or pa.types.is_string(column.type)
    ]
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression="zstd",
        compression_level=_ZSTD_LEVEL,
        use_dictionary=dictionary,
        column_encoding=delta,
        write_statistics=[name for name in names if name in _STATISTICS],
        store_decimal_as_integer=True,
        store_schema=False,
        write_page_checksum=True,
    ) as writer:
        writer.write_table(table, row_group_size=1 << 20)
        if note:
            writer.add_key_value_metadata(note)
    return bytes(sink.getvalue())
