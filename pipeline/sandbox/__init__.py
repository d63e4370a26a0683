"""A supplier to run against: a real HTTP server with deterministic data and faults on demand.

It speaks the supplier's document and keeps its own tables, validation and shapes. It shares nothing with the
rest of the project, so that a mistake in our models is never cancelled by the same mistake here.

Entry points: `process.SandboxProcess` (a separate process that dies with its parent), `server.serve`
(blocking), `identifiers.property_ids`, `world.World` (pure, no network) and `python -m pipeline.sandbox`.
"""
