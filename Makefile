# Everything that a person or CI runs. Each target does its own set-up; `make help` lists them.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Where to look for a Python >= 3.11, in this order; `make setup PYTHON=/path/to/python` names one.
PYTHON ?= python3.13 python3.12 python3.11 python3
# Test processes: one per core, at most four, since each holds its own copy of JAX.
WORKERS ?= auto

# The long fuzz of the judge: its seconds, and its processes, each of which takes one core and up to 2 GB.
FUZZ_SECONDS ?= 3600
FUZZ_WORKERS ?= $(shell nproc 2>/dev/null || echo 2)

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Two test processes on two cores: a second BLAS thread in each would only wait for the first.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses=$(WORKERS) --maxprocesses=4 --dist=worksteal

# pyright runs on the Node.js that constraints.txt pins and asks no server for a newer version.
export PYRIGHT_PYTHON_GLOBAL_NODE := 0
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help setup demo test quick test-slow fuzz coverage check lint types fast fix bench bench-gpu docs examples clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP)  ## make .venv with every extra, at the versions of constraints.txt

# Does the candidate run, is it new enough, and can it make environments? Launchers that exist and fail are passed over.
PROBE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

$(STAMP): pyproject.toml constraints.txt
	@if ! { $(BIN)/python -c '$(PROBE)' && $(BIN)/python -m pip --version; } >/dev/null 2>&1; then \
	    found=; \
	    for candidate in $(PYTHON); do \
	        if "$$candidate" -c '$(PROBE)' >/dev/null 2>&1; then found=$$candidate; break; fi; \
	    done; \
	    if [ -z "$$found" ]; then \
	        echo "No usable Python was found among: $(PYTHON)." >&2; \
	        echo "  Expected: Python 3.11 or later with its venv and ensurepip modules." >&2; \
	        echo "  What to do: install one (some systems ship venv apart, as python3-venv), or name it: make setup PYTHON=/path/to/python" >&2; \
	        exit 1; \
	    fi; \
	    echo "Making $(VENV) with $$("$$found" --version)"; \
	    "$$found" -m venv --clear $(VENV); \
	fi
	@echo "Installing mescal and every extra into $(VENV) (a minute or two)"
	@$(PIP_INSTALL) hatchling editables
	@$(PIP_INSTALL) --no-build-isolation --editable '.[all]'
	@touch $@

demo: $(STAMP)  ## solve a problem three ways; leaves runs/demo/report.html
	$(BIN)/python -m mescal.demo

# Types are checked beside the tests, in their first half minute.
test: lint  ## run the checks and the fast tests (what CI runs)
	@$(MAKE) --no-print-directory --jobs=2 types fast

fast: $(STAMP)
	$(PYTEST)

quick: $(STAMP)  ## run the most telling of the fast tests, in under a minute
	$(PYTEST) -m "quick and not slow"

test-slow: $(STAMP)  ## run the slow tests alone
	$(PYTEST) -m slow

fuzz: $(STAMP)  ## fuzz the judge for FUZZ_SECONDS in FUZZ_WORKERS processes; stores what it counts
	$(BIN)/python -m benchmarks fuzz --seconds $(FUZZ_SECONDS) --workers $(FUZZ_WORKERS)

coverage: $(STAMP)  ## the fast tests, with the share of every file's lines that they run
	$(PYTEST) --cov=mescal --cov-report=term:skip-covered

check: lint types  ## lint, formatting and types

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/pyright

fix: $(STAMP)  ## repair what lint and formatting find, as far as ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)  ## run the benchmarks and store their numbers
	$(BIN)/python -m benchmarks

bench-gpu: $(STAMP)  ## the same for an accelerator, on a machine that has one
	$(BIN)/python -m benchmarks gpu --threads 8

docs: $(STAMP)  ## build the documentation into docs/_build/html; a warning is an error
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -d docs/_build/doctrees -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

examples: $(STAMP)  ## run every script of the gallery; each holds what it asserts
	$(PYTEST) -m "slow or not slow" tests/examples

clean:  ## remove caches and build products; .venv and runs/ stay
	rm -rf build dist docs/_build .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
