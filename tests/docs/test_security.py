"""The claims of the section on security: each names a test, and what our tests cannot check is checked by CI."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "flows" / "README.md").read_text().partition("\n## Security\n")[2].partition("\n## ")[0]


def test_every_claim_names_tests_that_exist():
    claims = [line.split("|")[1:3] for line in SECTION.splitlines() if line.startswith("| ")][1:]
    assert len(claims) >= 15
    for claim, named in claims:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", named)
        assert tests, claim
        assert [name for file, name in tests if f"def {name}(" not in (ROOT / file).read_text()] == [], claim


@pytest.mark.parametrize(
    ("code", "found", "ended"),
    [(0, None, 0), (1, '{"vulns": ["CVE-1"]}', 2), (1, None, 0)],
    ids=["none", "one", "away"],
)
def test_ci_audits_the_dependencies_and_fails_on_a_known_vulnerability(tmp_path, code, found, ended):
    """A stand-in for the auditor: its answers about a locked dependency change daily."""
    assert "\nmake audit-deps\n" in (ROOT / ".ci" / "run").read_text()
    report = "" if found is None else f"printf '%s' '{found}' > .audit.json; "
    (tmp_path / "uv").write_text(f"#!/bin/sh\n{report}exit {code}\n")
    (tmp_path / "uv").chmod(0o755)
    done = subprocess.run(
        ["make", "--no-print-directory", "-o", "setup", "-f", ROOT / "Makefile", "audit-deps", f"BIN={tmp_path}"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ended, done.stderr
    assert ("Not audited" in done.stdout) == (code == 1 and found is None)
    assert found is None or found in done.stdout
