# Two commands bring a fresh machine up: make demo, make test. Only Python 3.11+, pip and make are needed.
PYTHON ?= python3
BIN := .venv/bin
# Exact versions everywhere, build environments included. torch goes first and alone: its version decides
# which build pip takes, and everything after it then finds it installed.
PIP := PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet
LOCKED := PIP_DISABLE_PIP_VERSION_CHECK=1 build/locked/bin/python -m pip install --quiet --no-deps

# Python keeps what it compiles: tests start many processes, and each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint smoke locked docs acceptance clean

demo: .venv/demo
	$(BIN)/guardband demo

# A file's tests stay together, so that what they share is made once, and start in order: the last are short doctests.
# One thread each, also in the processes that tests start: threads of several wait for each other at full speed.
test: export OMP_NUM_THREADS := 1
test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=15

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The wheel, in an empty environment of its own.
smoke: .venv/dev
	$(BIN)/python tests/wheel_smoke.py

# Every package by its hash, in an empty environment: what pip gets must be what locked.txt says. torch is left out of
# the lock and comes alone, without its libraries for GPUs. tools/lock.py writes the lock.
locked:
	rm -rf build/locked
	$(PYTHON) -m venv build/locked
	$(LOCKED) --require-hashes --only-binary=:all: -r locked.txt
	$(LOCKED) torch==2.13.0
	$(LOCKED) --no-build-isolation .
	build/locked/bin/python -m pip check
	build/locked/bin/python -m pytest -q -p no:cacheprovider tests/test_supply.py

# The documentation as a site: build/site/index.html, which opens without a server. Tutorials run if they have changed.
docs: .venv/dev
	$(BIN)/python docs/build.py build/site --execute

# Whether every promise holds: about an hour on two cores. A stopped run goes on where it was.
acceptance: .venv/dev
	$(BIN)/python benchmarks/acceptance/run.py -o build/acceptance
	$(BIN)/python benchmarks/acceptance/page.py build/acceptance

.venv/demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) torch==2.13.0
	$(PIP) --editable ".[tables,plots]"
	touch $@

.venv/dev: .venv/demo
	$(PIP) --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv dist build demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
