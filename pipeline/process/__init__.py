"""Signals and processes: what SIGINT and SIGTERM mean, and what a worker process must not import."""
