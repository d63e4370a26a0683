"""A server that speaks S3, and the address of a lake on it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest
from ceph_server import ceph_server
from s3_server import S3Server, s3_server
from seaweed_server import seaweed_server

_SERVERS = ["moto", *(pytest.param(name, marks=pytest.mark.cluster) for name in ("ceph", "seaweedfs"))]


@pytest.fixture(scope="module", params=_SERVERS)
def server(request, tmp_path_factory) -> Iterator[S3Server]:
    if request.param == "moto":
        running = s3_server()
    else:
        run = ceph_server if request.param == "ceph" else seaweed_server
        running = run(tmp_path_factory.mktemp(request.param))
    with running as server:
        yield server


@pytest.fixture
def address(server, monkeypatch, request) -> str:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return f"s3://bucket/{request.node.originalname}-{zlib.crc32(request.node.name.encode())}"
