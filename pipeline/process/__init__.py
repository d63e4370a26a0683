"""Signals, processes, tasks and the log: what SIGINT and SIGTERM mean, and what a worker process must not import."""
