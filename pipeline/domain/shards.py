"""How a sweep's searches are cut into shards (what lands at once) and segments (what is normalised at once).

Pure arithmetic on the plan's numbers, so that a resumed or repeated run cuts them the same way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.domain.search import Operation

# A shard of full multi answers is 1 to 2 MB compressed: small enough to lose, large enough to write well.
SEARCHES_PER_SHARD = 32
# Four shards hold about 120 thousand offers: a good Parquet row group.
SHARDS_PER_SEGMENT = 4


@dataclass(frozen=True, slots=True)
class Partition:
    """A contiguous run of searches of one operation and market: the unit that is loaded at once."""

    operation: Operation
    market: str
    start: int
    stop: int

    @property
    def name(self) -> str:
        """Readable name, unique in a sweep."""
        return f"{self.operation}-{self.market}"

    @property
    def searches(self) -> int:
        """Number of searches."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Shard:
    """Searches `start` to `stop` (exclusive) of a partition, landed together as one object."""

    partition: Partition
    number: int
    start: int
    stop: int

    @property
    def name(self) -> str:
        """Name of its object, unique in a sweep."""
        return f"{self.partition.name}-{self.number:06d}"

    @property
    def searches(self) -> int:
        """Number of searches."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Segment:
    """Some consecutive shards of a partition, normalised together into one file a table."""

    partition: Partition
    number: int
    shards: tuple[Shard, ...]

    @property
    def name(self) -> str:
        """Name of its files, unique in a sweep."""
        return f"{self.partition.name}-{self.number:05d}"


def segments(partition: Partition) -> Iterator[Segment]:
    """Cut a partition into segments, in the order of the plan."""
    per_segment = SEARCHES_PER_SHARD * SHARDS_PER_SEGMENT
    for number, first in enumerate(range(partition.start, partition.stop, per_segment)):
        starts = range(first, min(first + per_segment, partition.stop), SEARCHES_PER_SHARD)
        shards = tuple(
            Shard(
                partition,
                (start - partition.start) // SEARCHES_PER_SHARD,
                start,
                min(start + SEARCHES_PER_SHARD, partition.stop),
            )
            for start in starts
        )
        yield Segment(partition, number, shards)


def all_segments(partitions: Sequence[Partition]) -> Iterator[Segment]:
    """Cut all partitions into segments, in the order of the plan."""
    for partition in partitions:
        yield from segments(partition)
