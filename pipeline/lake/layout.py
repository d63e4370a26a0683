"""The paths of a lake: where each object and table is.

<lake>/lake.json                          format of the lake, and which folder holds its tables
<lake>/raw/<sweep>/sweep.json             the request of a sweep: written before the first search
<lake>/raw/<sweep>/<op>-<market>-<shard>.parquet
<lake>/raw/<sweep>/spread.json            workers of a cluster were given searches
<lake>/raw/<sweep>/end.json               the sweep has ended; the rest is not swept
<lake>/raw/inputs/<kind>/                 files that users loaded, unchanged, and a note of each loading
<lake>/quotes/<run>/                      ledger of quotes: an intent before each call, its answer right after
<lake>/tables/<table>/                    Delta tables; data files in one folder per sweep, input or run of quotes
<lake>/tables-<n>/<table>/                the same, after the n-th rebuild from raw
<lake>/published/nightaudit.duckdb        what analysts open
<lake>/reports/<sweep>/                   pages of a night, with their figures
<lake>/calls/<day>/                       leases of the daily cap
<lake>/checksums/                         checksums of all files: see `checksums`
"""

from pathlib import Path

PUBLISHED = "published/nightaudit.duckdb"


class Layout:
    """The paths of one lake; those that are strings are below its root."""

    root: Path
    tables_folder: str

    @staticmethod
    def raw_folder(sweep_id: str) -> str:
        """Folder of a sweep's raw objects."""
        return f"raw/{sweep_id}"

    @staticmethod
    def manifest_path(sweep_id: str) -> str:
        """Object with the request of a sweep."""
        return f"raw/{sweep_id}/sweep.json"

    @staticmethod
    def ending_path(sweep_id: str) -> str:
        """Object that marks the end of a sweep."""
        return f"raw/{sweep_id}/end.json"

    @staticmethod
    def spread_path(sweep_id: str) -> str:
        """Object that says that workers of a cluster were given searches of a sweep."""
        return f"raw/{sweep_id}/spread.json"

    @staticmethod
    def confirmation_path(run_id: str) -> str:
        """Object that lists the flags that a run re-queries."""
        return f"raw/{run_id}/confirm.json"

    @staticmethod
    def shard_path(sweep_id: str, shard_name: str) -> str:
        """Object that holds the answers of one shard."""
        return f"raw/{sweep_id}/{shard_name}.parquet"

    @staticmethod
    def inputs_folder(kind: str) -> str:
        """Folder of the files of one kind that users loaded."""
        return f"raw/inputs/{kind}"

    @staticmethod
    def quotes_folder(run_id: str) -> str:
        """Folder of a run of quotes."""
        return f"quotes/{run_id}" if run_id else "quotes"

    def table_file(self, table: str, sweep_id: str, name: str) -> str:
        """Data file of a table."""
        return f"{self.tables_folder}/{table}/{sweep_id}/{name}.parquet"

    def table_root(self, table: str) -> Path:
        """Folder of a Delta table."""
        return self.root / self.tables_folder / table

    @property
    def published_file(self) -> Path:
        """The DuckDB file that analysts open."""
        return self.root / PUBLISHED

    @property
    def reports(self) -> Path:
        """Folder of the pages: that of all nights, and a folder for each night."""
        return self.root / "reports"

    @property
    def spill(self) -> Path:
        """Folder for what does not fit into the memory of this machine's processes."""
        return self.root / ".spill"

    def local(self, path: str) -> Path:
        """Place of an object in the file system."""
        return self.root / path

    def path_of(self, place: Path) -> str:
        """Path of an object from its place in the file system."""
        return place.relative_to(self.root).as_posix()
