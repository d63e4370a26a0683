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
expected   which files there are, and which are missing
allowance  the daily cap on calls, kept in the lake

A lake on S3 is worked on in a copy of it:

object_store  objects that are created once, by the SHA-256 of their bytes
commit_log    versions of the lake, and who claims it
copy          this machine's folder: what it is of the store, and commits from it
copy_files    the files of that folder, and what is known of them
catch_up      how the folder becomes what the store says
claim         a section of writing: its claim, signs of life and commits
published_paths  the published file in another folder
"""

from pipeline.lake.files import beside, put_in_place, sync, write_in_place
from pipeline.lake.objects import Lake

__all__ = ["Lake", "beside", "put_in_place", "sync", "write_in_place"]
