# Two commands: `make run` starts gputop, `make test` checks it. Both need Python 3.11 or newer, make and
# git, and keep to this folder: .venv is made on first use and made again when pyproject.toml changes.
#
#   make run ARGS='run --rung cpu-fused'    gputop with arguments
#   make run EXTRAS=cuda13                  with these packages, instead of those that fit the driver here
#   make run PYTHON=/path/to/python         with this Python, on first use

ARGS ?=
EXTRAS ?=
PYTHON ?=

VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.installed-$(if $(EXTRAS),$(EXTRAS),run)
DEV_STAMP := $(VENV)/.installed-dev
GPU_STAMP := $(VENV)/.installed-for-driver

# stdout belongs to gputop: set-up speaks on stderr.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check
# What pip does for a package that it copies: the first start has not to wait for it.
COMPILE := $(BIN)/python -m compileall -q gputop phases

.PHONY: run test tests lint compile-all readme gpu-check results sweeps policies screenshots dist types clean

run: $(RUN_STAMP) $(if $(EXTRAS),,$(GPU_STAMP))
	@$(BIN)/gputop $(ARGS)

# The linters run beside the tests. Tests run two at a time, but those of a device, of which there is one, in turn.
test: $(DEV_STAMP) types
	@$(MAKE) --no-print-directory --jobs=2 lint tests
	$(BIN)/python -m pytest -q tests/gpu

tests: $(DEV_STAMP)
	$(BIN)/python -m pytest -q --numprocesses=2 --dist=loadfile tests/unit tests/compile tests/tui

lint: $(DEV_STAMP) types
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# What takes long, without a GPU: every kernel for every architecture, every planted fault, every emitted program;
# `make test` compiles every kernel for sm_90.
compile-all: $(DEV_STAMP)
	$(BIN)/python -m pytest -q --numprocesses=2 --dist=worksteal tests/compile tests/unit/test_emission.py --thorough

# Every command that README shows, on the cpu backend.
readme: $(DEV_STAMP)
	$(BIN)/python -m tests.readme_commands

# Everything that needs a GPU: make gpu-check EXTRAS=cuda13. Results lie in build/gpu.
gpu-check: $(DEV_STAMP) $(if $(EXTRAS),$(RUN_STAMP))
	PYTHON=$(BIN)/python tests/gpu/run_all.sh build/gpu

# From the running app; needs chromium and the Fira Code font.
screenshots: $(DEV_STAMP)
	$(BIN)/python screenshots/capture.py

# The search's simulated devices, from the recordings that are shipped; and policies compared on them.
sweeps: $(RUN_STAMP)
	$(BIN)/python -m gputop.session.recorded_cells

policies: $(DEV_STAMP)
	$(BIN)/python -m gputop.search.policy_trials

# README's results and docs/model.md, from the recordings that are shipped.
results: $(RUN_STAMP)
	$(BIN)/python -m docs.write_results

dist: $(DEV_STAMP)
	rm -rf dist
	$(BIN)/python -m build

# mypy finds submodules by folder: this shows it phases/ where Python sees it, below gputop. What it has
# cached does not notice a new file there.
types:
	@mkdir -p build/types/gputop
	@ln -sfn ../../../phases build/types/gputop/phases
	@ls phases | cmp -s - build/types/phases.txt || { rm -rf .mypy_cache; ls phases > build/types/phases.txt; }

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(RUN_STAMP): pyproject.toml | $(BIN)/python
	@echo "Installing gputop and what it needs into $(VENV), once." >&2
	@$(PIP_INSTALL) --editable '.$(if $(EXTRAS),[$(EXTRAS)])' >&2
	@$(COMPILE)
	@touch $@

# The packages that fit an NVIDIA driver. Without a driver nothing is kept, so the next start looks again.
$(GPU_STAMP): pyproject.toml | $(RUN_STAMP)
	@extra=$$($(BIN)/python -P gputop/backends/cuda/runtime/driver.py) || exit 0; \
	if [ -z "$$extra" ]; then :; \
	elif $(PIP_INSTALL) --editable ".[$$extra]" >&2; then touch $(VENV)/.installed-$$extra; \
	else echo "That failed, so the CPU is measured. To try again: make run EXTRAS=$$extra" >&2; \
	fi; \
	touch $@

$(DEV_STAMP): pyproject.toml | $(BIN)/python
	@echo "Installing gputop and its checks into $(VENV), once." >&2
	@$(PIP_INSTALL) --editable '.[dev]' >&2
	@$(COMPILE)
	@touch $@ $(VENV)/.installed-run

# Asked by running it: a version manager's shim may stand for a Python that is not there.
$(BIN)/python:
	@for python in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
	    $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	    if ! $$python -c 'import ensurepip, venv' 2>/dev/null; then venvless=$$python; continue; fi; \
	    echo "Making $(VENV) with $$python." >&2; \
	    exec $$python -m venv --clear $(VENV) >&2; \
	done; \
	if [ -n "$$venvless" ]; then \
	    echo "$$venvless can't make a virtual environment; on Debian and Ubuntu: apt install python3-venv" >&2; \
	else \
	    echo "gputop needs Python 3.11 or newer, and none was found. Name one: make PYTHON=/path/to/python" >&2; \
	fi; \
	exit 1
