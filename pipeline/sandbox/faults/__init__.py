"""Faults on demand: failed requests, and answers that trip a careless reader."""
