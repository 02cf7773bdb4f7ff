# Every target does its own set-up: a virtual environment in .venv, with the versions of constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PACKAGES := learner topics app
# Most tests wait for workers and brokers: more processes than the two cores of CI.
PROCESSES ?= 5
# Tests start hundreds of processes. Without bytecode on disk each compiles all that it imports, for 2 seconds.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test test-slow prepare test-interpreted chaos soak bench bench-pipeline screenshots lint audit clean
.DEFAULT_GOAL := help

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18

demo: $(READY) ## score a stream of simulated machine sensors; make demo ARGS="--seconds 20"
	@$(BIN)/faust-oslrau demo $(ARGS)

test: prepare ## run the tests; those on a real Kafka need Java 17 and Maven; make test ARGS="-k codec"
	@$(BIN)/python -m pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder -m "not slow" $(ARGS)

test-slow: prepare ## run the tests that `make test` leaves out: benchmarks in small, more chaos, the wheel
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m slow $(ARGS)

prepare: $(READY) ## download Kafka's jars and compile the kernels, which the tests need
	@$(BIN)/python -m faust_oslrau.app.brokers || true
	@$(BIN)/python tests/compile_kernels.py

test-interpreted: $(READY) ## run the learner's tests without the compiler; make test-interpreted ARGS="-k structure"
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 3 tests/learner $(ARGS)

chaos: $(READY) ## kill workers and brokers at random, then account for every record; make chaos ARGS="--seed 7"
	@PYTHONPATH=tests/app $(BIN)/python tests/chaos/chaos.py --out benchmarks/results $(ARGS)

soak: $(READY) ## run tens of millions of records through one worker; make soak ARGS="--minutes 30"
	@$(BIN)/python -m benchmarks.soak --out benchmarks/results $(ARGS)

bench: $(READY) ## reproduce the paper's tables and measure speed; make bench ARGS="table1 --dataset quake"
	@$(BIN)/python -m benchmarks $(or $(ARGS),all)

bench-pipeline: $(READY) $(VENV)/quix/.ready ## measure the worker on a real Kafka; needs Java 17 and Maven; make bench-pipeline ARGS="--records 100000"
	@$(BIN)/python -m benchmarks.pipeline --quix $(VENV)/quix/bin/python $(ARGS)

# An environment of its own: Quix Streams needs an older confluent-kafka than the demo.
$(VENV)/quix/.ready: $(READY)
	@$(PYTHON) -m venv $(@D)
	@grep -v '^confluent-kafka' constraints.txt > $(@D)/constraints.txt
	@$(@D)/bin/pip install -q --disable-pip-version-check -c $(@D)/constraints.txt -e . 'quixstreams>=3.28'
	@touch $@

screenshots: $(READY) ## make the pictures of the page in docs/images; needs Chromium with its driver
	@PYTHONPATH=tests/app $(BIN)/python docs/screenshots.py

lint: $(READY) ## check style and types
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/oxlint app
	@mkdir -p .typing && ln -sfn .. .typing/faust_oslrau
	@$(BIN)/mypy $(PACKAGES:%=-p faust_oslrau.%) -p grafana -p schemas
	@$(BIN)/lint-imports

# An environment of its own: the dependencies of pip-audit are not audited.
audit: ## look for known vulnerabilities in the versions of constraints.txt; asks PyPI, make audit ARGS="-s osv" the OSV
	@test -x $(VENV)/audit/bin/pip-audit || { $(PYTHON) -m venv $(VENV)/audit && \
		$(VENV)/audit/bin/pip install -q --disable-pip-version-check 'pip-audit>=2.7'; }
	@$(VENV)/audit/bin/pip-audit --strict --no-deps --disable-pip -r constraints.txt $(ARGS) || { \
		echo "NOT AUDITED, or vulnerable: the lines above say which."; exit 1; }

clean: ## remove everything that make and the tools made
	rm -rf $(VENV) build dist *.egg-info .typing .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		found=$$($(PYTHON) -V 2>/dev/null || echo missing); \
		echo "Python 3.11 or newer is needed, '$(PYTHON)' is $$found. Try: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 1; }
	@test -x $(BIN)/python || { echo "Making $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@.ci/install $(BIN)/python -e '.[dev]'
	@touch $@
