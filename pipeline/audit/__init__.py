"""The quality gate: a loaded sweep is measured, compared with earlier nights, and judged. Nothing is published here.

`audit` judges a sweep and writes down what it found; `stored_audit` reads that again. Only this package imports
Great Expectations, and only while it judges.
"""

from pipeline.audit.audit import Limits, audit
from pipeline.audit.results import Audit
from pipeline.audit.spread import Spread
from pipeline.audit.store import stored_audit

__all__ = ["Audit", "Limits", "Spread", "audit", "stored_audit"]
