"""A lake on S3: immutable objects and a log of commits. Each machine works on a copy of it.

object_store  objects that are created once, by the SHA-256 of their bytes
commit_log    versions of the lake, and who claims it
copy          this machine's folder: what it is of the store, and commits from it
copy_files    the files of that folder, and their last known state
catch_up      how the folder becomes what the store says
claim         a section of writing: its claim, signs of life and commits
hand_over     answers that workers of a cluster have landed, as objects
parcels       the files of tasks on other machines, exchanged as objects
in_place      the tables once more under their own paths, for other engines
in_use        which files of a worker's folder running tasks read
"""
