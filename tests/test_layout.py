"""The folders stay as a newcomer reads them: one per stage, each concept once, no unused module."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]

# What users and packaging find in `pipeline/` beside the stages.
LOOSE = {"__init__.py", "py.typed", "settings.py"}

# Words on -ing that are nouns of ours.
NOUNS = {"finding"}

# Modules of one name in several stages, which do there the same thing. A command is named like what it runs, and the
# declaration of a table like what fills it: such pairs need no line here.
SAME_FOR_EACH = {
    "__init__": "a folder's docstring",
    "content": "rooms and properties of detail answers: as rows, and as state",
    "failures": "errors of the layers below as ours: of the system, of the supplier",
    "flags": "flags as nights keep them, and as pages show them",
    "ledger": "what was entered for good: published sweeps, and quotes",
    "load": "files to tables: inputs, quotes, sweeps",
    "outcomes": "what became of a request: a search, a quote",
    "read_answer": "an answer to rows: of searches, of quotes",
}

# Folders of tests that belong to no stage.
BESIDE_THE_STAGES = {
    "analytics": "rules measured on planted worlds, through all stages",
    "benchmarks": "`make bench`",
    "contract": "the supplier's document as data",
    "docs": "README, guide and commands in step",
    "faults": "`make test-faults`, and lakes that lose files",
    "flows": "the folder `flows/`",
    "notebooks": "the folder `notebooks/`",
    "oracle": "relations computed again from the raw answers alone",
    "sql": "the folder `sql/`",
}
# Stages that are tested by the tests of others.
TESTED_ELSEWHERE = {
    "sample": "tests/inputs and tests/docs load the samples",
}

# Folders that list only some of their modules.
LISTS_A_PART = {"pipeline/report": "the pages; their parts are found from them"}

MOST_LINES = 250
# Longer modules, each with its reason.
LONGER = {
    "pipeline/cli/commands.py": "the signature and help of every command, in the order of --help",
    "pipeline/normalise/tolerant.py": "the tolerant reader, one function for each object of the wire",
    "pipeline/report/promotions.py": "one page: its sections in order",
    "pipeline/sandbox/world/prices.py": "all that a simulated price is made of",
    "pipeline/sandbox/world/profiles.py": "all that is fixed about a simulated property",
    "pipeline/settings.py": "every setting with its help",
    "pipeline/supplier/requests.py": "the requests of the supplier's document, with their bounds",
}


def files(*folders: str) -> list[Path]:
    """Python files that are, or will be, committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [Path(name) for name in listed if name.endswith(".py") and (ROOT / name).exists()]


def test_nothing_lies_loose_in_pipeline_but_settings():
    assert {path.name for path in (ROOT / "pipeline").iterdir() if path.is_file()} == LOOSE


def test_a_folder_that_lists_its_modules_lists_them_all():
    """A newcomer reads the list first: what it leaves out is overlooked, and what is gone cannot be found."""
    modules = defaultdict(set)
    for path in files("pipeline"):
        modules[path.parent].add(path.stem)
        if len(path.parts) > 2:
            modules[path.parent.parent].add(path.parent.name)
    for folder, there in modules.items():
        text = ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text())) or ""
        listed = {
            name for line in re.findall(r"^ *(\w+(?:, \w+)*) {2,}\S", text, re.MULTILINE) for name in line.split(", ")
        }
        assert listed - there == set(), f"{folder} lists what is gone"
        missing = there - listed - {"__init__", "__main__"}
        if listed and str(folder) not in LISTS_A_PART:
            assert missing == set(), f"{folder} does not list all"


def test_a_module_is_named_by_a_noun_or_a_verb():
    assert {path.stem for path in files("pipeline", "flows") if path.stem.endswith("ing")} <= NOUNS


def test_the_vocabulary_touches_no_file():
    """The import rules see `os` and `io`; they see neither `open` nor what a path can do."""
    touching = {"exists", "glob", "is_dir", "is_file", "iterdir", "mkdir", "open", "read_bytes", "read_text", "stat"}
    touching |= {"touch", "unlink", "write_bytes", "write_text", "urlopen"}
    found = [
        f"{path}:{node.lineno}"
        for path in files("pipeline/domain")
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in touching
    ]
    assert found == []


def test_two_modules_of_one_name_do_the_same_thing():
    folders = defaultdict(set)
    for path in files("pipeline"):
        if path.parts[1] not in {"cli", "sandbox"} and path.parts[1:3] != ("domain", "tables"):
            folders[path.stem].add(path.parent)
    assert {name for name, found in folders.items() if len(found) > 1} == SAME_FOR_EACH.keys()


def test_tests_lie_as_the_stages_do():
    stages = {path.parts[1] for path in files("pipeline") if len(path.parts) > 2}
    tested = {path.parts[1] for path in files("tests") if len(path.parts) > 2}
    assert tested - stages == BESIDE_THE_STAGES.keys()
    assert stages - tested == TESTED_ELSEWHERE.keys()


def test_a_long_module_has_a_reason():
    long = {str(path) for path in files("pipeline", "flows") if (ROOT / path).read_text().count("\n") > MOST_LINES}
    assert long - LONGER.keys() == set(), "split it, or give the reason why it reads better in one piece"
    assert LONGER.keys() - long == set(), "a reason for a module that is gone, or no longer long"


def test_every_exception_from_lint_carries_its_reason():
    bare = [
        f"{path}:{number}"
        for path in files("pipeline", "flows", "tests", "notebooks")
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1)
        if re.search(r"#\s*noqa\b(?!: [A-Z]+\d+(, [A-Z]+\d+)* - \S)", line) and path.name != "test_layout.py"
    ]
    assert bare == []


def test_every_exception_from_the_lint_of_sql_is_explained_in_the_line_above():
    """Behind the name of a rule, sqlfluff allows no reason."""
    bare = []
    for path in (ROOT / "sql").glob("*/*.sql"):
        above = ""
        for number, line in enumerate(path.read_text().splitlines(), 1):
            excused = re.search(r"-- noqa(?:: (\w+))?", line)
            if excused and not above.strip().startswith(f"-- {excused[1]} "):
                bare.append(f"{path.relative_to(ROOT)}:{number}")
            above = line
    assert bare == []


def test_every_module_of_the_product_is_read_by_the_product():
    """What only tests import belongs to the tests."""
    modules = {path: ".".join(path.with_suffix("").parts) for path in files("pipeline", "flows", "notebooks")}
    read = set()
    for path in modules:
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                read |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                read |= {alias.name for alias in node.names}
    text = (ROOT / "pyproject.toml").read_text() + "".join((ROOT / path).read_text() for path in modules)
    alone = {
        name
        for path, name in modules.items()
        if path.parts[0] == "pipeline" and path.stem not in {"__init__", "__main__"} and name not in read
    }
    assert {name for name in alone if f'"{name}' not in text and f"-m {name}" not in text} == set()
