PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: build check test soak demo lint

build: $(VENV)/.ready
	$(BIN)/python setup.py -q build_ext --inplace

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade pip
	$(BIN)/pip install -q -e '.[dev]'
	touch $@

check: build
	$(BIN)/python -m pytest -q -m "quick"

test: lint
	$(BIN)/python -m pytest -q -m "not soak"
