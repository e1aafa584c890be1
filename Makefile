# `make demo` and `make test` are all that a newcomer needs: each makes .venv itself, and installs nothing elsewhere.
#
#   make demo [REPO=path]    the main job, for real, on a clone of this repository (or of another one)
#   make test [ARGS=…]       all tests
#   make lint                ruff and mypy
#   make clients             the Node programs that some tests use
#   make bench               measures everything beside git, ripgrep and other servers, and writes docs/performance.md
#   make bench QUICK=1       the same on small inputs, in two minutes, for the terminal alone
#   make bench ONLY=list,9   some of it: names, or numbers of goals; the page keeps its other rows
#   make docs                the pages that are made of the code

PYTHON ?= $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11,\
	$(shell $(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed

# What a shell may carry over from another project must not reach into .venv.
unexport PYTHONPATH PYTHONHOME PIP_TARGET PIP_PREFIX PIP_USER
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := test
.PHONY: demo test clients lint format bench docs clean

demo: $(INSTALLED)
	@PATH="$(CURDIR)/$(BIN):$$PATH" REPO="$(REPO)" bash fixtures/demo.sh

# Tests wait for processes more than they compute: one more of them than there are cores keeps these busy.
test: $(INSTALLED)
	@$(BIN)/python -m pytest -n $$(( $$($(BIN)/python -c 'import os; print(os.cpu_count() or 1)') + 1 )) $(ARGS)

# The official TypeScript clients, the inspector and the conformance suite; without them their tests are skipped.
clients: $(INSTALLED)
	@PYTHONPATH=tests $(BIN)/python -m support.node_clients install

lint: $(INSTALLED)
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/python -m mypy

format: $(INSTALLED)
	@$(BIN)/python -m ruff check --fix .
	@$(BIN)/python -m ruff format .

# On tmpfs unless FOLDER=… says where; what is generated and fetched is kept in the user's cache.
bench: $(INSTALLED)
	@PYTHONPATH=tests $(BIN)/python -m benchmarks $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) $(if $(FOLDER),--folder $(FOLDER))

docs: $(INSTALLED)
	@PYTHONPATH=tests $(BIN)/python -m support.cli_reference
	@PYTHONPATH=tests $(BIN)/python -m support.tools_reference
	@PYTHONPATH=tests $(BIN)/python -m support.toolset_rules
	@PYTHONPATH=tests $(BIN)/python -m support.tools_listing
	@PYTHONPATH=tests $(BIN)/python -m benchmarks --render

clean:
	rm -rf $(VENV)

# Made again when the dependencies may have changed; otherwise there is nothing to do.
$(INSTALLED): pyproject.toml
	@test -n "$(PYTHON)" || { echo "exeora needs Python 3.11 or later: none is on PATH as python3 (or pass PYTHON=/path/to/python)" >&2; exit 1; }
	@command -v git >/dev/null || { echo "exeora needs git, and there is none on PATH" >&2; exit 1; }
	@echo "setting up $(VENV) with $$($(PYTHON) --version)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@
