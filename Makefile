# Everything people run; each target is one line of an existing tool.
PYTHON ?= python3.11
UV := uv==0.13.8
SLOW ?= tests
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup nightly demo schedule notebooks test test-slow test-faults test-cluster test-duckdb test-daft surface sql-readme picture check audit-deps bench bench-quick format format-check lint types imports sql lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: .venv/.ready  ## virtual environment with the locked dependencies

# Compiled once here: the nights and the tests start many processes, and some must write no bytecode of their own.
# uv installs in seconds; where it cannot reach the index (a mirror known to pip alone), pip does the same work.
.venv/.ready: .ci/requirements.txt pyproject.toml
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(UV)
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r .ci/requirements.txt \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .ci/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

nightly: setup  ## run a night: sweep, load, publish, summary (the sandbox, unless a supplier is set)
	@$(BIN)/nightaudit nightly
	@echo "To see nights in Prefect's UI, and have them run by a schedule: make schedule"

demo: setup  ## fill an empty lake with 45 simulated nights, and say where to look (some minutes)
	@$(BIN)/nightaudit demo

schedule: setup  ## serve the nightly deployment on this machine, by NIGHTAUDIT_SCHEDULE_CRON
	@$(BIN)/python -m flows.deploy

notebooks: setup  ## open the notebooks over the published file, in a browser on this machine
	@$(BIN)/marimo run --token notebooks

# The flows share one Prefect server, which answers late where other tests take the processors: they run by themselves.
test: setup  ## run the tests
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow and not cluster" --ignore tests/flows
	$(BIN)/pytest -m "not slow and not cluster" tests/flows

# Nights that are audited, published, stopped, rebuilt, replayed and simulated: seconds to minutes each. SLOW names folders
# or files to take a part; `.ci/run` names those that run on every change.
test-slow: setup  ## run the tests that take whole nights; SLOW="tests/sweep tests/night" takes a part
	$(BIN)/pytest -n 2 --dist loadfile -m "slow and not cluster" --durations 15 --durations-min 20 $(SLOW)

# Kills, full disks, limits, two at once, clocks: minutes. See tests/faults/README.md.
test-faults: setup  ## do harm to nights, and look that nothing is lost or doubled; PARTS="kills" takes a part
	@PYTHONPATH=tests $(BIN)/python -m faults $(PARTS) $(FAULTS)

# Workers that die, stores and databases that are away: minutes. Where a server is missing, its tests are skipped.
test-cluster: setup  ## run nights on several workers, and take parts of them away
	@echo "For all of it: apt-get install --no-install-recommends postgresql redis-server ceph-mon ceph-osd radosgw"
	$(BIN)/pytest -m cluster -rs --durations 0 --durations-min 1 tests

test-duckdb: setup  ## let the oldest DuckDB that is supported read what we publish, and run the SQL
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --target .duckdb duckdb==1.5.6
	OTHER_DUCKDB=.duckdb $(BIN)/pytest tests/sql/test_reads.py
	PYTHONPATH=.duckdb $(BIN)/pytest -n 2 --dist loadfile tests/sql tests/lake/test_user_sql.py

test-daft: setup  ## let Daft work out a relation on the Delta tables
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --no-deps --target .daft daft==0.7.26
	PYTHONPATH=.daft DO_NOT_TRACK=true $(BIN)/pytest tests/lake/test_daft.py

surface: setup  ## write down what users rely on, after a change that is meant to change it
	$(BIN)/python tests/test_surface.py

sql-readme: setup  ## write the lists and the drawing of sql/README.md from the files
	$(BIN)/python tests/sql/readme.py

picture: setup  ## draw the README's picture from the demo in NIGHTAUDIT_LAKE (needs Chromium)
	$(BIN)/python tests/docs/picture.py

check: setup format-check lint types imports sql  ## everything people run before a commit
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow and not cluster" --ignore tests/flows --cov --cov-report=
	$(BIN)/pytest -m "not slow and not cluster" tests/flows --cov --cov-append --cov-report=term:skip-covered

format: setup  ## format the code
	$(BIN)/ruff format

format-check: setup
	$(BIN)/ruff format --check

lint: setup
	$(BIN)/ruff check

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

sql: setup
	$(BIN)/sqlfluff lint --processes 0 sql

bench: setup  ## measure speed beside peers; PARTS="normalise fetch" takes some of the parts
	PYTHONPATH=tests $(BIN)/python -m benchmarks $(PARTS)

bench-quick: setup  ## what the hot paths cost, to run before and after a change; QUICK=--keep starts over
	@PYTHONPATH=tests $(BIN)/python -m benchmarks.quick $(QUICK)

# The tool has an environment of its own. Without an index it writes nothing, says so, and does not fail.
audit-deps: setup  ## ask the index for known vulnerabilities of the locked dependencies
	@rm -f .audit.json; $(BIN)/uv tool run --quiet --from pip-audit==2.10.1 pip-audit --disable-pip --require-hashes \
	  --progress-spinner off -r .ci/requirements.txt -f json -o .audit.json && exit 0; \
	if test -s .audit.json; then cat .audit.json; exit 1; fi; echo "Not audited: the index could not be asked."

lock:  ## resolve the dependencies again (a requirements file with hashes and without addresses)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra dev --extra bench --extra mcp --extra cluster --generate-hashes --no-header --upgrade pyproject.toml -o .ci/requirements.txt

clean:  ## remove the virtual environment and the caches; the lake stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
