"""Sweep specs: reading, validating and freezing what a sweep asks about."""

from pipeline.spec.model import Ask, Horizon, Properties, Stays, SweepSpec
from pipeline.spec.reading import parse_spec, read_spec

__all__ = ["Ask", "Horizon", "Properties", "Stays", "SweepSpec", "parse_spec", "read_spec"]
