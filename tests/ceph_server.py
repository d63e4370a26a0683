"""A real S3 server: Ceph's gateway over one monitor and one file-backed store, without installation.

Its programs are those of Debian's packages, installed, or unpacked (`dpkg -x`) into the folder that CEPH_ROOT names.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import pytest
from free_port import free_port
from s3_server import KEY_ID, SECONDS_AWAY, SECRET, S3Server
from waiting import await_true

_PACKAGES = "apt-get install --no-install-recommends ceph-mon ceph-osd radosgw"
_CONF = """
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{mon_port}/0]
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = {folder}/keyring
run dir = {folder}
admin socket = {folder}/$name.asok
log file = {folder}/$name.log
mon data = {folder}/mon
osd data = {folder}/osd
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon data avail crit = 1
mon max pg per osd = 1000
osd crush chooseleaf type = 0
osd objectstore = bluestore
bluestore block size = 4294967296
osd class dir = {lib}/rados-classes
erasure code dir = {lib}/ceph/erasure-code
plugin dir = {lib}/ceph
[client.rgw]
rgw data = {folder}/rgw
rgw frontends = beast endpoint=127.0.0.1:{port}
"""


class Gateway(S3Server):
    """The gateway; while it cannot be reached, it is suspended and answers nothing."""

    def go_away(self, seconds: float = SECONDS_AWAY) -> None:
        self._process.send_signal(signal.SIGSTOP)
        threading.Timer(seconds, self._process.send_signal, [signal.SIGCONT]).start()


@contextmanager
def ceph_server(folder: Path) -> Iterator[S3Server]:
    """Run a gateway with one bucket, `bucket`, all of it in a folder. Skips the test if Ceph is missing."""
    root = Path(os.environ.get("CEPH_ROOT", "/"))
    if shutil.which("radosgw", path=str(root / "usr/bin")) is None:
        pytest.skip(f"there is no Ceph: {_PACKAGES}, or name a folder with these packages unpacked in CEPH_ROOT")
    lib = root / "usr/lib/x86_64-linux-gnu"
    libraries = [lib, lib / "ceph", root / "lib/x86_64-linux-gnu", root / "usr/lib"]
    environment = os.environ | {"PATH": f"{root / 'usr/bin'}:{os.environ['PATH']}"}
    if str(root) != "/":
        environment["LD_LIBRARY_PATH"] = ":".join(map(str, libraries))
        environment["PYTHONPATH"] = str(root / "usr/lib/python3/dist-packages")
    for name in ("mon", "osd", "rgw"):
        (folder / name).mkdir()
    fsid, osd, mon_port, port = uuid.uuid4(), uuid.uuid4(), free_port(), free_port()
    conf, keyring = folder / "ceph.conf", str(folder / "keyring")
    conf.write_text(_CONF.format(fsid=fsid, mon_port=mon_port, port=port, folder=folder, lib=lib))
    running: list[subprocess.Popen[str]] = []
    log = (folder / "log").open("w")

    def run(*command: str) -> str:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(*command: str) -> subprocess.Popen[str]:
        running.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log, text=True))
        return running[-1]

    def ceph(*arguments: str) -> str:
        return run("/usr/bin/python3", str(root / "usr/bin/ceph"), "-c", str(conf), *arguments)

    try:
        run("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
        for name, rights in {
            "client.admin": ["mon", "allow *", "osd", "allow *", "mgr", "allow *"],
            "client.rgw": ["mon", "allow rwx", "osd", "allow rwx"],
            "osd.0": ["mon", "allow profile osd", "osd", "allow *"],
        }.items():
            caps = [part for at in range(0, len(rights), 2) for part in ("--cap", rights[at], rights[at + 1])]
            run("ceph-authtool", keyring, "--gen-key", "-n", name, *caps)
        mon_map = str(folder / "monmap")
        run("monmaptool", "--create", "--fsid", str(fsid), "--addv", "a", f"[v2:127.0.0.1:{mon_port}]", mon_map)
        run("ceph-mon", "-c", str(conf), "-i", "a", "--mkfs", "--monmap", mon_map, "--keyring", keyring)
        start("ceph-mon", "-c", str(conf), "-i", "a", "-f")
        ceph("osd", "new", str(osd), "0")
        key = run("ceph-authtool", "-p", "-n", "osd.0", keyring).strip()
        run("ceph-osd", "-c", str(conf), "-i", "0", "--mkfs", "--osd-uuid", str(osd), "--key", key)
        start("ceph-osd", "-c", str(conf), "-i", "0", "-f")
        await_true(lambda: " 1 up" in ceph("osd", "stat"))
        gateway = start("radosgw", "-c", str(conf), "-n", "client.rgw", "-f")
        await_true(lambda: _answers(port))
        user = ["user", "create", "--uid", "test", "--display-name", "test", "--access-key", KEY_ID, "--secret", SECRET]
        run("radosgw-admin", "-c", str(conf), "-n", "client.admin", *user)
        made = Gateway(gateway, port)
        boto3.client(
            "s3", endpoint_url=made.address, aws_access_key_id=KEY_ID, aws_secret_access_key=SECRET, region_name="x"
        ).create_bucket(Bucket="bucket")
        yield made
    finally:
        for process in reversed(running):
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
        log.close()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
