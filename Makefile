# make demo: the main job, end to end. make check: the quick tests. make test: all that CI runs. make soak: the long runs.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
export PATH := $(abspath $(BIN)):$(PATH)

.PHONY: bench build check coverage demo fuzz lint mutations schema soak spark40 test wheels

build: $(VENV)/.ready
	$(BIN)/python setup.py -q build_ext --inplace

# The environment: dependencies, and the `kwire` command on this checkout.
$(VENV)/.ready: pyproject.toml setup.py
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kwire needs Python 3.11 or newer: set PYTHON")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q -e '.[dev]' 'setuptools>=77' 'Cython>=3.1'
	touch $@

lint: build
	$(BIN)/ruff check .
	$(BIN)/cython-lint kwire_c
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest kwire_c --concise --ignore-disjoint-bases --allowlist tests/stubtest-allowlist
	$(BIN)/lint-imports
	$(BIN)/codespell README.md CHANGELOG.md SECURITY.md kwire kwire_c tests tools benchmarks wheelhouse

check: build
	$(BIN)/python -m pytest -q -m quick

test: lint
	$(BIN)/python -m pytest -q -m "not soak"

# Half an hour of each fuzzer, two at a time; what is new is kept in tests/data/fuzz.
fuzz: build
	$(BIN)/python -m tests.fuzz --seconds 1800 --keep

# Ten million mutations under the sanitisers, logged with their seeds in build/mutations.jsonl; goes on where it was ended.
mutations: build
	$(BIN)/python -m tests.hostile.soak

soak: build spark40 mutations
	$(BIN)/python -m pytest -q -m soak --timeout 7200

demo: build
	$(BIN)/python -m tests.demo.demo

# Lines of the .pyx and branches of the C that the tests run, at least 95 % of each: ten minutes.
coverage: build
	$(BIN)/python -m tests.coverage.measure

# kwire beside its peers: prints ratios and which bars hold, writes benchmarks/results.
bench: build
	$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python -m benchmarks.run

# Wheels of every Python and processor, built, inspected and tried as shipped, into wheelhouse/: half an hour.
wheels: build
	$(BIN)/python -m wheelhouse

# A new Kafka release: make schema RELEASE=4.5.0, then do what it prints (docs/new-release.md). Needs Java and Maven.
schema: build
	@test -n "$(RELEASE)" || { echo 'which release? make schema RELEASE=4.5.0' >&2; exit 2; }
	$(BIN)/python -m tools.schema $(RELEASE)

# The Spark tests on the oldest Spark that kwire works with, beside the environment's own packages.
spark40: build
	test -d $(VENV)/spark40 || $(BIN)/python -m pip install -q --no-deps --target $(VENV)/spark40 'pyspark==4.0.*'
	PYTHONPATH=$(CURDIR)/$(VENV)/spark40 $(BIN)/python -m pytest -q tests/spark
