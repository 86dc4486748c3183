# Pathcast. `make` alone lists what there is; every target creates what it needs.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV   ?= .venv
BIN    := $(VENV)/bin
PYTHON_VENV := $(BIN)/python
STAMPS := $(VENV)/.stamps
# Options for one run, e.g. make test PYTEST="-k snapshot".
PYTEST ?=
DEMO   ?=
BENCH  ?=
FIGURES ?= figures
# Where wheels are written.
DIST   ?= dist
# Processes that run tests side by side; each has a Spark session of its own.
JOBS   ?= 2
# Seconds for each fuzz entry of a nightly run.
FUZZ   ?= 60
# Faults to seed, by name; all if empty.
FAULTS ?=
# Of a nightly run, e.g. 2/5 for the second of five parts; the kernel's own tests are in the first.
PART   ?=

# Tests start hundreds of processes, which need not all compile the same sources.
unexport PYTHONDONTWRITEBYTECODE

PYTHON_CODE := $(wildcard conftest.py src papers/pathcast_papers lab/pathcast_lab tests examples tools)
KERNEL_SOURCES := Cargo.toml Cargo.lock $(shell find kernel -type f \( -name '*.rs' -o -name '*.toml' -o -name '*.py' -o -name '*.pyi' \))
# PyO3 asks this interpreter how to build, so that clippy and maturin agree.
CARGO := PYO3_PYTHON=$(abspath $(PYTHON_VENV)) cargo

.PHONY: help demo demo-dht demo-net demo-kafka test check bench figures nightly seeded-faults fmt build wheels clean kernel rust-tests

help: ## list the targets
	@echo "Pathcast: filter XML messages by hundreds of thousands of standing XPath queries."
	@echo
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{printf "%-28s %s\n", $$1, $$2}'
	@echo
	@echo "The first call sets up $(VENV) and builds the kernel; that takes a few minutes. PYTHON=... names the Python to use."

demo: $(STAMPS)/python kernel ## push generated messages through the Spark pipeline and show what was delivered
	@$(PYTHON_VENV) -m pathcast demo $(DEMO)

demo-dht: $(STAMPS)/python kernel ## run twenty peers that hold one automaton, kill one, compare matches with one process
	@$(PYTHON_VENV) -m pathcast_lab demo ring $(DEMO)

demo-net: $(STAMPS)/python kernel ## run seven brokers, kill one; then five, and place profiles by content; compare deliveries with one process
	@$(PYTHON_VENV) -m pathcast_lab demo net $(DEMO)
	@$(PYTHON_VENV) -m pathcast_lab demo registry

demo-kafka: $(STAMPS)/python kernel ## run a Kafka of its own, from a topic of messages to one of deliveries; compare them with one process
	@$(PYTHON_VENV) -m pathcast_lab.demo_kafka

test: $(STAMPS)/python kernel rust-tests ## run all tests but the long ones: kernel, Python, Spark, doc examples
	@echo "==> pytest: tests and doc examples"
	@$(BIN)/pytest -n $(JOBS) $(PYTEST)

check: $(STAMPS)/python kernel ## lint, types, format, stubs, import rules; changes nothing
	@echo "==> ruff check"
	@$(BIN)/ruff check $(PYTHON_CODE)
	@echo "==> ruff format --check"
	@$(BIN)/ruff format --check $(PYTHON_CODE)
	@echo "==> mypy --strict"
	@$(BIN)/mypy
	@echo "==> stubtest pathcast_kernel"
	@$(PYTHON_VENV) -m mypy.stubtest --allowlist tools/stubtest-allowlist.txt pathcast_kernel
	@echo "==> import-linter"
	@$(BIN)/lint-imports
	@echo "==> cargo fmt --check"
	@$(CARGO) fmt --all --check
	@echo "==> cargo clippy, warnings denied"
	@$(CARGO) clippy --quiet --workspace --all-targets --locked -- -D warnings

bench: $(STAMPS)/python kernel ## measure the engine, the short set; ratios to lxml's bare parse
	@$(PYTHON_VENV) -m pathcast_lab bench $(BENCH)

figures: $(STAMPS)/python kernel ## measure the figures of a paper again, into docs/figures.md; FIGURES=broker-figures for another paper's
	@$(PYTHON_VENV) -m pathcast_lab bench $(FIGURES) --page docs/figures.md

nightly: $(STAMPS)/python kernel ## the long differential, fuzz, fault and cost runs, PART=1/5 for a fifth (PATHCAST_NIGHTLY=examples for longer)
	@if [[ "$(PART)" =~ ^(1/.*)?$$ ]]; then \
	    echo "==> cargo test, ignored (long) tests included"; \
	    $(CARGO) test --quiet --release --locked -p pathcast-core -- --include-ignored; \
	    echo "==> fuzz entries on mutated seeds"; \
	    PATHCAST_FUZZ_SECONDS=$(FUZZ) $(CARGO) test --quiet --release --locked -p pathcast-core --test fuzz; \
	fi
	@echo "==> pytest -m nightly"
	@PATHCAST_PART=$(PART) $(BIN)/pytest -m nightly --timeout 7200 $(PYTEST)

seeded-faults: $(STAMPS)/python kernel ## put faults into the kernel, one at a time; the tests must find each (FAULTS="gate last" for some)
	@$(PYTHON_VENV) tools/seeded_faults.py $(FAULTS)

fmt: $(STAMPS)/python ## format Python and Rust sources
	@$(BIN)/ruff check --fix-only --quiet $(PYTHON_CODE)
	@$(BIN)/ruff format $(PYTHON_CODE)
	@cargo fmt --all

build: $(STAMPS)/python kernel ## set up the environment and build the kernel

wheels: kernel ## write both wheels into dist/; they install on any machine, without Rust
	@mkdir -p $(DIST)
	@rm -f $(DIST)/pathcast*.whl
	@cp build/wheels/*.whl $(DIST)
	@$(PYTHON_VENV) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(DIST) .
	@ls $(DIST)/*.whl

clean: ## remove everything that the other targets created
	rm -rf $(VENV) build dist target demo-output spark-warehouse metastore_db derby.log
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src papers lab tests examples tools kernel -name __pycache__ -prune -exec rm -rf {} +

$(STAMPS)/python: pyproject.toml papers/pyproject.toml lab/pyproject.toml tools/make-venv tools/find-python
	@tools/make-venv $(VENV)
	@mkdir -p $(STAMPS)
	@touch $@

# Built again when a source changed.
kernel: $(STAMPS)/kernel

$(STAMPS)/kernel: $(KERNEL_SOURCES) tools/build_kernel.py | $(STAMPS)/python
	@$(PYTHON_VENV) tools/build_kernel.py
	@touch $@

rust-tests: kernel
	@echo "==> cargo test -p pathcast-core"
	@$(CARGO) test --quiet --locked -p pathcast-core
