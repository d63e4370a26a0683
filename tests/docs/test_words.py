"""What people read is plain English: it does without the words of `words.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from words import instead, unwanted

ROOT = Path(__file__).parents[2]
READ = {".py", ".sql", ".md", ".toml", ".j2", ".yaml", ".yml"}

# Files and folders that may keep such words, each with its reason.
EXCEPTIONS = {
    "tests/docs/words.py": "the list itself",
    "pipeline/sandbox/world/descriptions.py": "names of simulated properties, which are data",
}


def test_no_page_comment_or_message_uses_a_word_that_we_do_not_use():
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    files = [
        name
        for name in listed
        if (Path(name).suffix in READ or name in {"Makefile", ".env.example"})
        and not name.startswith(tuple(EXCEPTIONS))
    ]
    assert len(files) > 300
    found = [
        f"{name}:{line}: {word!r}, better: {instead(word)}"
        for name in files
        if (ROOT / name).exists()
        for line, word in unwanted(ROOT / name)
    ]
    assert found == []


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_exception_is_of_something_that_is_there(name):
    assert (ROOT / name).exists()
