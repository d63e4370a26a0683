"""Prefect flows: orchestration only. The work itself is in `pipeline` and runs without Prefect.

Importing this package sets defaults of Prefect's environment, so it must come before any import of Prefect. Variables
that the user has set are kept.
"""

import os

_DEFAULTS = {
    # Neither Prefect's client nor a server that we start sends usage data.
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    # The pipeline's log goes into the run's log.
    "PREFECT_LOGGING_EXTRA_LOGGERS": "pipeline",
    # A run counts as dead after three missed heartbeats; with Prefect's default, that would take nine minutes.
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "60",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
}

for _name, _value in _DEFAULTS.items():
    os.environ.setdefault(_name, _value)
