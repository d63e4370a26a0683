"""An executor that stands for a machine which has only the files that a task names."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future

from pipeline.lake import Lake


class AnotherMachine(Executor):
    """Does each task where the lake holds what the task reads and nothing else, and takes home what it wrote."""

    def __init__(self, lake: Lake, files_read: Callable[..., Iterable[str]]) -> None:
        self.lake = lake
        self.files_read = files_read
        self.tasks = []

    def submit(self, fn, /, *args):
        given = set(self.files_read(*args))
        self.tasks.append((args, given))
        home = self.lake.root.with_name("home")
        self.lake.root.rename(home)
        try:
            for path in given:
                (self.lake.root / path).parent.mkdir(parents=True, exist_ok=True)
                (self.lake.root / path).hardlink_to(home / path)
            done = Future()
            done.set_result(fn(*args))
            for place in self.lake.root.rglob("*.parquet"):
                path = place.relative_to(self.lake.root)
                if str(path) not in given:
                    (home / path).parent.mkdir(parents=True, exist_ok=True)
                    place.replace(home / path)
        finally:
            shutil.rmtree(self.lake.root)
            home.rename(self.lake.root)
        return done

    def shutdown(self, wait=True, *, cancel_futures=False):
        """There is nothing to end."""
