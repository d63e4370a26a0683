"""Where everything lies.

objects    the lake's paths, its objects and its one writer lock
raw        what was asked and what came back, untouched
delta      commits to the Delta tables
sweep_files  which files of a table hold a sweep
compact    a night's many files as few
inventory  what a lake takes up
database   the only place that opens DuckDB
relations  the SQL under `sql/`, by name
checksums  what each file held when it was written
allowance  the daily cap on calls, kept in the lake
"""

from pipeline.lake.objects import Lake, beside, put_in_place, sync

__all__ = ["Lake", "beside", "put_in_place", "sync"]
