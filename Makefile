# Every target works from a fresh clone with Python 3.11 or newer, git and make.
PYTHON ?= python3
export VENV ?= .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
ETC := $(VENV)/etc/jupyter
PYTEST := $(BIN)/python -m pytest
RUFF := $(BIN)/python -m ruff
SLOW := browser bench* command experiments folders hostile_* lab_* live_drawing notebooks server storing views*
PAGES := tests/test_front_ends.py tests/test_hostile_chapters.py tests/test_site.py tests/test_slides.py tests/test_wheel.py

.PHONY: help install lab test check test-pages test-all format notebooks site slides student gif clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The server's configuration is a data file of the package; an editable installation leaves it out, so it is copied.
# nbconvert's has a name that anything may use, so it comes into this environment only, and over nothing.
$(VENV)/.installed: requirements.txt pyproject.toml $(wildcard jupyter-config/*.py jupyter-config/*.d/*.json)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "posviz needs Python 3.11 or newer as '$(PYTHON)'. Install it, or name it: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "This Python has no venv module. Install it (Debian, Ubuntu: apt install python3-venv) and run make again."; exit 1; }
	@echo "Installing into $(VENV). This takes a few minutes the first time."
	@[ "$$(uname -s)$$PIP_EXTRA_INDEX_URL" != Linux ] || echo "Several GB less on Linux: stop, set PIP_EXTRA_INDEX_URL as README.md says, run make again."
	@$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@mkdir -p $(ETC)/jupyter_server_config.d
	@cp jupyter-config/jupyter_server_config.d/posviz.json $(ETC)/jupyter_server_config.d/
	@test -e $(ETC)/jupyter_nbconvert_config.py || cp jupyter-config/jupyter_nbconvert_config.py $(ETC)/
	@touch $@

$(VENV)/.installed-tests: $(VENV)/.installed $(VENV)/.installed-tools tests/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -r tests/requirements.txt
	@touch $@

$(VENV)/.installed-tools: $(VENV)/.installed tools/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -r tools/requirements.txt
	@touch $@

install: $(VENV)/.installed  ## create .venv with everything the course needs
	@echo "Installed in $(VENV). Next: make lab"

# What `posviz` does with a copy, here with the chapters themselves.
lab: $(VENV)/.installed  ## open the chapters in JupyterLab
	@$(BIN)/python -m posviz notebooks

# Ruff, then three runs one after the other, so that Chromium never shares two cores with anything else; all run in any case.
# -p no:python: the first run collects notebooks only.
# One thread a kernel: the same rounding everywhere.
test check notebooks: export OMP_NUM_THREADS = 1
test: $(VENV)/.installed-tests  ## check everything: layout of the code, notebooks, live pictures in Chromium, unit tests
	@$(BIN)/python -c 'import matplotlib.font_manager'
	@failed=; \
	$(RUFF) format --check . && $(RUFF) check . || failed="$$failed ruff"; \
	$(PYTEST) -p no:python --nbval --nbval-current-env --nbval-cell-timeout 120 -n 2 --dist loadscope notebooks \
		|| failed="$$failed notebooks"; \
	$(PYTEST) tests/test_browser.py || failed="$$failed browser"; \
	$(PYTEST) -n 2 --doctest-modules posviz tests $(PAGES:%=--ignore=%) --ignore=tests/test_browser.py || failed="$$failed unit-tests"; \
	if [ -n "$$failed" ]; then echo "Failed, see above:$$failed"; exit 1; fi

# For the working day: what takes long, the pictures and the trainings above all, is left out.
check: $(VENV)/.installed-tests  ## check in under a minute: layout of the code, chapter 1, the quicker unit tests
	$(RUFF) format --check .
	$(RUFF) check .
	$(PYTEST) -q -p no:python --nbval --nbval-current-env --nbval-cell-timeout 120 notebooks/01_what.ipynb
	$(PYTEST) -q -n 2 --doctest-modules posviz tests $(PAGES:%=--ignore=%) $(SLOW:%='--ignore-glob=tests/test_%.py')

test-pages: $(VENV)/.installed-tests  ## check site, slides, other front ends, a reader's settings and the wheel with one chapter
	$(PYTEST) $(PAGES)

# A push would wait too long for every chapter, so this runs once a week.
test-all: export EVERY_CHAPTER = 1
test-all: test-pages  ## the same with every chapter

format: $(VENV)/.installed-tests  ## bring all Python files into ruff's layout, mend what it can mend by itself
	$(RUFF) check --fix .
	$(RUFF) format .

notebooks: $(VENV)/.installed  ## run all chapters and store their outputs
	@$(BIN)/python tools/notebooks.py

site: $(VENV)/.installed-tools  ## write all chapters as a book of web pages, pictures alive, into site/
	$(BIN)/python tools/book.py

slides: $(VENV)/.installed-tools  ## write one reveal.js deck a chapter into slides/
	$(BIN)/python tools/slides.py

student: $(VENV)/.installed  ## write a copy without solutions and teacher's notes into student/
	$(BIN)/python tools/student.py

gif: $(VENV)/.installed-tools  ## draw the moving picture at the top of the README
	$(BIN)/python tools/gif.py

clean:  ## remove what the other targets made, .venv included
	rm -rf $(VENV) build site slides student *.egg-info .pytest_cache .ruff_cache .hypothesis
