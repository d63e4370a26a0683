"""Samples for the sandbox: a sweep spec, and a file of each kind that users load."""
