# Every target works from a fresh clone with Python 3.11 or newer, git and make.
PYTHON ?= python3
export VENV ?= .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif

.PHONY: help install lab test notebooks clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.installed: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "posviz needs Python 3.11 or newer as '$(PYTHON)'. Install it, or name it: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "This Python has no venv module. Install it (Debian, Ubuntu: apt install python3-venv) and run make again."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps -e .
	@touch $@

$(VENV)/.installed-tests: $(VENV)/.installed tests/requirements.txt
	$(BIN)/python -m pip install --quiet -r requirements.txt -r tests/requirements.txt
	@touch $@

install: $(VENV)/.installed  ## create .venv with everything the course needs

clean:  ## remove what the other targets made, .venv included
	rm -rf $(VENV) build site slides student *.egg-info .pytest_cache .hypothesis
