"""The lake: where every file is, and how it is read and written.

lake             a lake: its address, the folder of its tables, its one writer at a time
objects          the objects in its folder: written, read, removed
layout           its paths
mark             lake.json
writer_lock      the lock of a lake's folder
files            writing and removing files
raw              requests and answers, untouched
raw_answer       one raw answer, from its address to request and body
records          small objects as JSON, read back as the same type
ledger           the published sweeps
delta            commits to the Delta tables
table_log        their logs, read again only when they have changed
sweep_files      the files of a table that hold a sweep
compact          a night's many files merged into few
inventory        the size of a lake
database         the only place that opens DuckDB
column_sql       declared columns as SQL
enumerations     texts of few values as enumerations
relations        the SQL under `sql/`, by name
checksums        a checksum of each file, from when it was written
sums_file        one file of checksums: its lines, and its end
expected         which files must be there, and which are missing
user_condition   the condition of an alert rule
user_sql         the permitted statements of users, and their session
user_query       a user's query within limits of time and memory
query_child      its process
query_texts      its intervals and bytes, as DuckDB writes them
allowance        the daily cap on calls, kept in the lake
published_paths  the published file in another folder
simulated        whether the published night is simulated
pulled           folders that hold what another lake has published
s3               a lake on S3: its log of commits, and this machine's copy of it
"""

from pipeline.lake.files import beside, building, put_in_place, sync, write_in_place
from pipeline.lake.lake import Lake

__all__ = ["Lake", "beside", "building", "put_in_place", "sync", "write_in_place"]
