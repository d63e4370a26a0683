"""The lake: where every file lies, and how it is read and written.

objects    a lake: its objects, the folder of its tables, its one writer at a time
layout     its paths
mark       lake.json
writer_lock  the lock of a lake's folder
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
user_sql   what a user's statement may be, and the session it runs in
user_query  a user's query, bounded in time and memory; query_child is its process
allowance  the daily cap on calls, kept in the lake
published_paths  the published file in another folder
s3         a lake on S3: its log of commits, and the copy of it that this machine works on
"""

from pipeline.lake.files import beside, put_in_place, sync, write_in_place
from pipeline.lake.objects import Lake

__all__ = ["Lake", "beside", "put_in_place", "sync", "write_in_place"]
