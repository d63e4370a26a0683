"""nightaudit: sweep a lodging supplier's prices every night, keep every answer, publish what can be trusted."""

__version__ = "0.1.0"
