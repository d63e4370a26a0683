"""One sweep, from its first search to its last row in the lake.

`begin` records the plan; `run` requests, lands, normalises and loads; `close` abandons the remaining searches.
Everything can be repeated: what has landed is not requested again, and what is loaded is not loaded again.
"""

from pipeline.sweep.begin import begin, plan_of
from pipeline.sweep.progress import SweepProgress
from pipeline.sweep.run import Asking, PartOf, SweepOptions, close, run

__all__ = ["Asking", "PartOf", "SweepOptions", "SweepProgress", "begin", "close", "plan_of", "run"]
