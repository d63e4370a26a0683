from __future__ import annotations

import gc

import pytest
from benchmarks.parts.normalise import msgspec, orjson
from benchmarks.quick import has_changed


@pytest.mark.parametrize("peer", [orjson, msgspec])
def test_a_peer_leaves_the_collector_on_for_what_runs_after_it(peer, tmp_path):
    (tmp_path / "0.json").write_bytes(b'{"properties":[]}')
    peer(str(tmp_path))()
    assert gc.isenabled()


def test_a_change_is_reported_only_beyond_what_both_runs_scatter():
    assert has_changed([1.3, 1.4], [1.0, 1.2])
    assert has_changed([0.8, 0.9], [1.0, 1.2])
    assert not has_changed([1.1, 1.4], [1.0, 1.2])
    assert not has_changed([0.9, 1.3], [1.0, 1.2])
