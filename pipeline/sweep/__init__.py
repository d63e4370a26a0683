"""One sweep, from its first search to its last row in the lake.

`begin` writes down what will be asked; `run` asks, lands, normalises and loads; `close` gives up what was not asked.
Everything can be repeated: what has landed is not asked again, what is loaded is not loaded again.
"""

from pipeline.sweep.begin import begin, plan_of
from pipeline.sweep.progress import SweepProgress
from pipeline.sweep.run import Asking, PartOf, SweepOptions, close, run

__all__ = ["Asking", "PartOf", "SweepOptions", "SweepProgress", "begin", "close", "plan_of", "run"]
