# Two commands do everything on a machine that has Python 3.11 or newer and make, without root:
#
#     make demo     environment, install, one real question to the embedded model, its answer
#     make test     environment, everything that tests need, format, lint, types, tests
#
# Everything lies in .venv, which can be deleted at any time. PYTHON=... chooses the Python that it is made with,
# PYTEST_ARGS=... what pytest is told besides, PYTEST_WORKERS=... in how many processes it runs.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input --quiet
PYTHON ?=
PYTEST_ARGS ?=
PYTEST_WORKERS ?= 4
FUZZ_SECONDS ?= 60
FUZZ_SEED ?=
BARE ?=

# Tests start thousands of interpreters, of which each would compile ferrule again.
export PYTHONDONTWRITEBYTECODE :=

.DELETE_ON_ERROR:
.PHONY: help demo test test-slow test-bare quickstart fuzz bench docs screenshots format clean

help:
	@sed -n 's/^#     make/make/p' Makefile
	@echo "make test-slow   the tests that take minutes"
	@echo "make test-bare   make test in a bare Debian that is made for it, which takes root; BARE=\"--root --with g++\" chooses who runs it and what is there"
	@echo "make quickstart  runs docs/quickstart.md word for word, in a copy of this clone"
	@echo "make fuzz        the coverage-guided fuzzer, FUZZ_SECONDS on each notation; FUZZ_SEED=1 draws the same inputs again"
	@echo "make bench       every benchmark, with the limits that are promised"
	@echo "make docs        the documents as a site in site/, with a reference of every public name; it can be read without a server"
	@echo "make screenshots the pictures of commands in docs/screenshots, from what the commands print"
	@echo "make format      put the code into its format"
	@echo "make clean       delete $(VENV)"

demo: $(VENV)/.default
	@$(BIN)/ferrule ask "What is 123456 * 789?"

test: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -m "not slow" --numprocesses $(PYTEST_WORKERS) --dist worksteal $(PYTEST_ARGS)

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -m slow --numprocesses $(PYTEST_WORKERS) --dist worksteal $(PYTEST_ARGS)

test-bare:
	.ci/bare $(BARE) make test PYTEST_ARGS='$(PYTEST_ARGS)' PYTEST_WORKERS='$(PYTEST_WORKERS)'

# Without an environment of ours: the page makes its own.
quickstart:
	@$(or $(PYTHON),python3) docs/run_quickstart.py

fuzz: $(VENV)/.dev
	$(BIN)/python fuzz/run.py --seconds $(FUZZ_SECONDS) $(if $(FUZZ_SEED),--seed $(FUZZ_SEED))

bench: $(VENV)/.dev
	@missed=; for file in benchmarks/*.py; do \
	    case $$file in benchmarks/startup.py) options=--install ;; *) options= ;; esac; \
	    echo "== $$file $$options"; $(BIN)/python $$file $$options || missed="$$missed $$file"; echo; \
	done; \
	if [ -n "$$missed" ]; then echo "not all goals are reached:$$missed"; exit 1; fi

docs: $(VENV)/.docs
	$(BIN)/python docs/write_reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "site/index.html"

screenshots: $(VENV)/.default
	$(BIN)/python docs/take_screenshots.py

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV)

# The stamps are files, so that a second `make` installs nothing; a changed pyproject.toml installs again.
$(VENV)/.default: $(VENV)/.made pyproject.toml constraints.txt
	@echo "Installing ferrule into $(VENV)"
	@$(PIP) install --editable . --constraint constraints.txt
	@touch $@

$(VENV)/.docs: $(VENV)/.made pyproject.toml constraints.txt
	@echo "Installing ferrule and what builds its site into $(VENV)"
	@$(PIP) install --editable '.[docs]' --constraint constraints.txt
	@touch $(VENV)/.default $@

# torch comes first and exactly so: any looser request makes pip fetch a build with gigabytes of CUDA beside it.
$(VENV)/.dev: $(VENV)/.made pyproject.toml constraints.txt
	@echo "Installing ferrule and what its tests need into $(VENV): torch is a large download"
	@$(PIP) install torch==2.13.0
	@$(PIP) install --editable '.[dev]' --constraint constraints.txt
	@touch $(VENV)/.default $@

# A pyenv shim may be there for a Python that isn't, so each candidate is run before it is taken.
# Debian's Python has venv without pip; its own pip, where there is one, then fills the environment.
$(VENV)/.made:
	@chosen=; \
	for python in $(or $(PYTHON),python3.14 python3.13 python3.12 python3.11 python3 python); do \
	    if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then chosen=$$python; break; fi; \
	done; \
	if [ -z "$$chosen" ]; then \
	    echo "ferrule needs Python 3.11 or newer; $(if $(PYTHON),$(PYTHON) is not that,none was found: name one with make PYTHON=/path/to/python3.11)." >&2; \
	    exit 1; \
	fi; \
	echo "Making $(VENV) with $$("$$chosen" --version)"; \
	rm -rf $(VENV); \
	if "$$chosen" -c 'import ensurepip' 2>/dev/null; then "$$chosen" -m venv $(VENV); \
	elif "$$chosen" -m pip --version >/dev/null 2>&1; then \
	    "$$chosen" -m venv --without-pip $(VENV) && "$$chosen" -m pip --python $(BIN)/python --quiet install pip; \
	else \
	    echo "$$chosen can't make an environment: its ensurepip is missing. On Debian and Ubuntu the package python3-venv has it; PYTHON=... chooses another Python." >&2; \
	    exit 1; \
	fi
	@touch $@
