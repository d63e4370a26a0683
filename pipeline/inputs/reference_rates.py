"""Reference rates as the European Central Bank publishes them: the history (zip or CSV) and the daily file.

Date,USD,JPY,…,                  history: one row a day, `N/A` where there was no rate, a comma at the end
2026-11-20,1.0912,163.05,…,
Date, USD, JPY, …                daily: one row, the date as `20 November 2026`
"""

import io
import zipfile
import zlib

import polars as pl

from pipeline.domain.codes import ISO_4217
from pipeline.domain.errors import InputError
from pipeline.inputs import kinds, user_table
from pipeline.inputs.problems import Findings
from pipeline.inputs.user_table import ROW, report, report_repeated

# The history also has currencies that the euro or a new unit replaced before ISO_4217 begins.
_CURRENCIES = (ISO_4217 | {"CYP", "EEK", "LTL", "LVL", "MTL", "ROL", "SIT", "SKK", "TRL"}) - {"EUR"}
_LONG_DATE = r"^\d{1,2} [A-Za-z]+ \d{4}$"
# The history of all currencies since 1999 is not a tenth of this.
_MOST_BYTES = 64_000_000
_AGAIN = "Download it again from the ECB: the history of its euro reference rates, as a zip or a CSV file."


def read_rates(data: bytes, findings: Findings, _: object = None) -> pl.DataFrame:
    """Return `line_no`, `rate_date`, `currency` and `rate`, one row a rate; what is wrong is added to `findings`."""
    texts = user_table.csv_texts(_unzipped(data, findings.file_name), findings)
    currencies = _currencies(texts, findings)
    text = pl.col("Date")
    written_out = pl.when(text.str.contains(_LONG_DATE)).then(text).str.to_date("%d %B %Y", strict=False)
    dated = texts.with_columns(pl.coalesce(kinds.DAY.parse(text), written_out).alias("rate_date"))
    bad_dates = dated.filter(pl.col("rate_date").is_null())
    report(findings, bad_dates, "Date", lambda text: f"{text!r} is not a date like 2026-11-20 or 20 November 2026")
    days = dated.drop_nulls("rate_date").select(ROW, pl.col("rate_date").alias("Date"))
    report_repeated(findings, days, ["Date"], "the same day")
    rates = dated.select(ROW, "rate_date", *currencies).unpivot(
        currencies, index=[ROW, "rate_date"], variable_name="currency", value_name="text"
    )
    stated = rates.filter((pl.col("text") != "N/A") & pl.col("text").is_not_null())
    stated = stated.with_columns(kinds.RATE.parse(pl.col("text")).alias("rate"))
    for currency in currencies:
        bad = stated.filter((pl.col("currency") == currency) & pl.col("rate").is_null()).rename({"text": currency})
        report(findings, bad, currency, lambda text: f"{text!r} is not {kinds.RATE.expected}, or N/A")
    return stated.select(ROW, "rate_date", "currency", "rate").sort("rate_date", "currency")


def _currencies(texts: pl.DataFrame, findings: Findings) -> list[str]:
    if "Date" not in texts.columns:
        findings.add(1, "Date", "it is missing")
    currencies = [name for name in texts.columns if name not in {ROW, "Date"}]
    for name in currencies:
        if name not in _CURRENCIES:
            findings.add(1, name, "it is unknown. Known columns: Date and ISO 4217 codes; EUR is the base")
    if not currencies:
        findings.add(1, "", "it names no currency")
    findings.refuse_faults()
    return currencies


def _unzipped(data: bytes, file_name: str) -> bytes:
    if not data.startswith(b"PK"):
        return data
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [name for name in archive.namelist() if name.lower().endswith(".csv")]
            if len(names) == 1 and archive.getinfo(names[0]).file_size <= _MOST_BYTES:
                return archive.read(names[0])
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"{file_name} cannot be loaded: {error}.", kept="Nothing was loaded.", hint=_AGAIN) from None
    raise InputError(
        f"{file_name} cannot be loaded: it is not a zip with one CSV file of up to {_MOST_BYTES // 1_000_000} MB.",
        kept="Nothing was loaded.",
        hint=_AGAIN,
    )
