"""Where everything lies.

objects    the lake's paths, its objects and its one writer lock
files      how a file gets its name and loses it
raw        what was asked and what came back, untouched
delta      commits to the Delta tables
sweep_files  which files of a table hold a sweep
compact    a night's many files as few
inventory  what a lake takes up
database   the only place that opens DuckDB
relations  the SQL under `sql/`, by name
checksums  what each file held when it was written
sums_file  one file of checksums: its lines, and where they end
expected   which files there are, and which are missing
allowance  the daily cap on calls, kept in the lake
published_paths  the published file in another folder
s3         a lake on S3: its log of commits, and the copy of it that this machine works on
"""

from pipeline.lake.files import beside, put_in_place, sync, write_in_place
from pipeline.lake.objects import Lake

__all__ = ["Lake", "beside", "put_in_place", "sync", "write_in_place"]
