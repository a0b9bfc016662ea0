# Everything happens in .venv; the targets make it, and come back at once when it is up to date.
#   make PYTHON=python3.12 …   another interpreter (3.11 or later); replaces an environment of another version
#   make test ARGS='-k fill'   arguments for pytest
#   make test WORKERS=0        in one process, for a debugger; two by default
#   make test DRIVER=swiftshader   on this driver alone (tests/support/drivers.py); without it the machine's best device
#   make test RUN=name         keeps its results as JUnit files in build/runs/name (tests/support/devices/runs.py)
#   make test LAYERS=newest        under newer validation layers (tests/support/layers.py)

PYTHON ?= python3
ARGS ?=
DRIVER ?=
RUN ?=
# Debian 12's layers know nothing of what is newer in this driver.
LAYERS ?= $(if $(filter lavapipe-13,$(DRIVER)),newest)
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# What the suite starts, hundreds of times, does not compile its modules again; older mypy does not know workers.
unexport PYTHONDONTWRITEBYTECODE
export MYPY_NUM_WORKERS ?= 2
# Empty unless an interpreter was named on the command line or in the environment.
NAMED := $(filter-out file,$(origin PYTHON))

SHELL := /bin/sh
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help check demo test test-fast soak lint docs docs-serve format shaders bench gpu-bundle fuzz mutants vulkan clean FORCE

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile

check: ## what to run before a commit: lint and test-fast, two minutes together
	@status=0; for target in lint test-fast; do $(MAKE) --no-print-directory $$target || status=1; done; exit $$status

demo: vulkan ## set up, list the devices, multiply two vectors, and classify pictures of digits
	$(BIN)/pumice demo

# Part of the suite in several processes that take tests from each other, whole files at a time where they can.
SHARED := -n $(WORKERS) --dist worksteal --durations=10
ON_DRIVER := $(if $(DRIVER),$(BIN)/python tests/support/drivers.py $(DRIVER))
UNDER_LAYERS := $(if $(LAYERS),$(BIN)/python tests/support/layers.py $(LAYERS))
VALIDATED := PUMICE_VALIDATION=1 $(ON_DRIVER) $(UNDER_LAYERS) $(BIN)/python -m pytest
KEPT = $(if $(RUN),--junitxml=build/runs/$(RUN)/$(1).xml)

# What measures time runs alone, after all else. Each part says its count; both must pass. 5: it selected no test.
test: $(VENV)/.dev ## set up with validation layers and the tools of tests, and run the whole suite
	$(BIN)/python -m pumice.tools.setup.vulkan --validation --test-tools
	@$(VALIDATED) --timing=without $(SHARED) $(call KEPT,many) $(ARGS); many=$$?; \
	echo '== what measures time, alone'; \
	$(VALIDATED) --timing=only --durations=10 $(call KEPT,alone) $(ARGS); alone=$$?; \
	case "$$many $$alone" in '0 0' | '0 5' | '5 0') exit 0 ;; 0\ *) exit $$alone ;; *) exit $$many ;; esac

test-fast: $(VENV)/.dev ## run the tests that need no device and no peer, in under a minute
	$(BIN)/python -m pytest -m 'not (vulkan or gpu or peer or timing or slow)' $(SHARED) $(ARGS)

soak: ## run the whole suite in full: every sampled test, and the long forms of statistical and stress tests
	@PUMICE_SOAK=1 $(MAKE) test

PAGES = $$(git ls-files '*.md')

lint: $(VENV)/.dev ## ruff, mypy, mdformat, codespell and the rules of prose, as CI runs them; counts the pages' code blocks
	@status=0; for check in 'ruff check .' 'ruff format --check .' mypy codespell "mdformat --check $(PAGES)" \
	  'python tests/support/pages.py' 'python tests/support/prose.py'; do \
	  echo "$(BIN)/$$check" | cut -c1-80; $(BIN)/$$check || status=1; \
	done; exit $$status

docs: $(VENV)/.dev ## build the documentation site into build/site, warnings as errors
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

docs-serve: $(VENV)/.dev ## serve the site, and build it anew as its pages change
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

format: $(VENV)/.dev ## let ruff and mdformat fix and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mdformat $(PAGES)

shaders: vulkan ## compile the GLSL sources in shaders/ to SPIR-V
	$(BIN)/python -m pumice.shaders.build

bench: vulkan ## run every benchmark
	@$(PIP) install --only-binary=:all: -e '.[bench]' || echo 'make: no wheels to compare with here' >&2
	@set -e; for file in benchmarks/[a-z]*.py; do echo "== $$file"; $(BIN)/python "$$file"; done

gpu-bundle: $(VENV)/.dev ## pack what an offline machine with a GPU needs to try pumice: build/pumice-gpu.tar.xz (docs/hardware.md)
	$(BIN)/python tests/support/gpu_bundle/pack.py $(ARGS)

mutants: $(VENV)/.dev vulkan ## run 20,000 damaged and hostile modules (ARGS='--seed 2')
	$(BIN)/python tests/fuzz/fuzz.py --kind mutants --cases 20000 $(ARGS)

fuzz: $(VENV)/.dev vulkan ## give 100,000 damaged, forged and random inputs of every kind (ARGS='--seed 2 --cases 5000')
	$(BIN)/python tests/fuzz/fuzz.py $(ARGS)

clean: ## remove the environment and everything built
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis benchmarks/build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

vulkan: $(VENV)/.core
	$(BIN)/python -m pumice.tools.setup.vulkan

$(VENV)/.core: pyproject.toml $(VENV)/.made
	@echo 'make: installing pumice and its dependencies into $(VENV)'
	@$(PIP) install -e .
	@touch $@

# IREE has wheels for some Pythons and platforms only; the tests that need them skip without, and say so. Most of what
# is installed is never imported, so that it is compiled when it is.
$(VENV)/.dev: pyproject.toml $(VENV)/.made
	@echo 'make: installing pumice and its development tools into $(VENV)'
	@$(PIP) install --no-compile --only-binary=:all: -e '.[dev,peer]' \
	  || { echo 'make: no IREE wheels for this Python and platform; the tests marked peer will skip' >&2; \
	    $(PIP) install --no-compile -e '.[dev]'; }
	@touch $(VENV)/.core $@

# An environment that someone made by hand is taken as it is, unless it is broken or another interpreter was named.
# mypy knows a package by its folder's name, and the package is the repository root, whatever that is called: a link of
# the right name inside the environment serves (see mypy_path in pyproject.toml).
SERIES := import sys; print("%d.%d" % sys.version_info[:2]); sys.exit(sys.version_info < (3, 11))
$(VENV)/.made: $(if $(NAMED),FORCE)
	@set -e; \
	wanted=$$($(PYTHON) -c '$(SERIES)') || { \
	  echo "make: pumice needs Python 3.11 or later; $(PYTHON) is $${wanted:-not there};" \
	    'install one, or name it: make PYTHON=python3.12 ...' >&2; \
	  exit 1; }; \
	found=$$($(BIN)/python -c 'import pip; $(SERIES)' 2> /dev/null) || found=; \
	if [ -z "$$found" ] || { [ -n "$(NAMED)" ] && [ "$$found" != "$$wanted" ]; }; then \
	  if ! $(PYTHON) -c 'import ensurepip, venv' 2> /dev/null; then \
	    sudo=; [ "$$(id -u)" = 0 ] || sudo='sudo -n'; \
	    if command -v apt-get > /dev/null && $$sudo true 2> /dev/null; then \
	      echo "make: installing python$$wanted-venv"; \
	      $$sudo apt-get -qq update || true; \
	      $$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
	        "python$$wanted-venv" < /dev/null > /dev/null; \
	    else \
	      echo 'make: $(PYTHON) cannot make virtual environments (it lacks ensurepip);' \
	        'on Debian and Ubuntu: apt-get install python3-venv' >&2; \
	      exit 1; \
	    fi; \
	  fi; \
	  echo "make: making $(VENV) with Python $$wanted"; \
	  rm -rf $(VENV); \
	  $(PYTHON) -m venv $(VENV); \
	fi; \
	if [ ! -e $@ ] || [ ! -L $(VENV)/typing/pumice ]; then \
	  mkdir -p $(VENV)/typing; \
	  ln -sfn ../.. $(VENV)/typing/pumice; \
	  touch $@; \
	fi

FORCE:
