"""Sweep specs: reading, validating and freezing what a sweep asks for.

A spec is a TOML file, or a YAML file with the same keys. `spec_keys()` lists them all with their meaning; the sample
spec shows them in use. The three tables are multiplied:

    [properties]                    # exactly one of ids, file, query, sandbox
    ids = [100001, 100002]

    [stays]                         # every check-in with every number of nights
    nights = [1, 3, 7]
    [[stays.horizon]]               # every day of the next thirty …
    to_days = 30
    [[stays.horizon]]               # … then every third day, up to day ninety
    to_days = 90
    every_days = 3

    [ask]
    markets = ["GB", "SE"]          # or "all"
    parties = ["2", "2c5-9"]
    product_types = ["Hotel", "Package"]
    currencies = ["EUR"]
"""

from pathlib import Path

from pipeline.spec.model import SweepSpec
from pipeline.spec.properties import resolve_properties, resolve_watched
from pipeline.spec.spec_file import SpecKey, parse_spec, read_spec, spec_keys
from pipeline.spec.values import DetailRule

SAMPLE_SPEC = Path(__file__).parents[1] / "sample" / "sweep.toml"

__all__ = [
    "SAMPLE_SPEC", "DetailRule", "SpecKey", "SweepSpec", "parse_spec", "read_spec", "resolve_properties",
    "resolve_watched", "spec_keys",
]  # fmt: skip
