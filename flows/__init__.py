"""Prefect flows: orchestration only. The work itself is in `pipeline` and runs without Prefect.

Importing this package sets defaults of Prefect's environment; variables that the user has set are kept. Prefect reads
them when it is first imported, so this works only where this package is imported first, as `python -m flows.deploy`
does; the processes that it starts inherit them. In a run on a worker, Prefect imports the flows, so `prefect.yaml` sets
the same variables for each run, and the image sets them for each container.
"""

import os

# How often a run tells Prefect's server that it is alive. `dead_runs.py` waits for three of them.
HEARTBEAT_SECONDS = 60

DEFAULTS = {
    # Neither Prefect's client nor a server that we start sends usage data.
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    # The pipeline's log goes into the run's log.
    "PREFECT_LOGGING_EXTRA_LOGGERS": "pipeline",
    # With Prefect's default, it would take nine minutes to notice a dead run.
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_SECONDS),
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
}

for _name, _value in DEFAULTS.items():
    os.environ.setdefault(_name, _value)
