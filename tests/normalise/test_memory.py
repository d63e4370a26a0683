"""The memory that one answer at the limits takes in the process that reads it, whatever its parts are."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

MOST_MB = 1_600
PRODUCT = b'{"productId":"1","q":1,"r":1,"s":1}'
ANSWERS = {
    "names": lambda: b'{"properties":[{"propertyId":1,%s}]}' % b",".join(b'"%x":1' % n for n in range(4_900_000)),
    "products": lambda: (
        b'{"properties":[{"propertyId":1,"roomStays":[{"id":1,"products":[%s]}]}]}' % b",".join([PRODUCT] * 999_000)
    ),
}
PROGRAM = """
import gc, sys
from pathlib import Path
from pipeline.domain.search import Operation
from pipeline.normalise.interned import Interned
from pipeline.normalise.read_answer import read_answer
# As a segment is read.
gc.disable()
reading = read_answer(Path(sys.argv[1]).read_bytes(), Operation.MULTI, frozenset({1}), Interned())
assert not reading.is_unreadable
assert len(reading.deviations) > 3_900_000
with open("/proc/self/status") as status:
    print(next(line for line in status if line.startswith("VmHWM")).split()[1])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
@pytest.mark.parametrize("of", ANSWERS)
def test_an_answer_of_millions_of_deviating_parts_takes_bounded_memory(tmp_path, of):
    (tmp_path / "answer").write_bytes(ANSWERS[of]())
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "answer")]
    # A test that fails takes no machine with it.
    most = 4 * MOST_MB * 1_000_000
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
    )
    assert int(done.stdout) / 1000 < MOST_MB
