"""Prefect flows: orchestration only. What they orchestrate lives in `pipeline` and runs without Prefect.

Importing this package sets defaults of Prefect's environment, so it comes before any import of Prefect. What the
user has set stays.
"""

import os

_DEFAULTS = {
    # Neither Prefect's client nor a server that we start phones home.
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    # What the pipeline logs belongs to the run's log.
    "PREFECT_LOGGING_EXTRA_LOGGERS": "pipeline",
    # A run that is killed with its machine is known by three missed heartbeats; by Prefect's own, after nine minutes.
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "60",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
}

for _name, _value in _DEFAULTS.items():
    os.environ.setdefault(_name, _value)
