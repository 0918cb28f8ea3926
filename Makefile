# Python >= 3.11 and make are all that is needed; the rest goes into .venv.
#   make demo    what the library does, on examples/session.pcap
#   make test    all checks, as the CI runs them
# CONTRIBUTING.md has the other targets.

PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
	$$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& { echo $$python; break; }; done)
EXTRAS := ciphers,columns,delta,dev,fuzz,native,qm,scapy,spark,stores,zstd
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST := $(BIN)/python -m pytest
# Tests wait a good deal for processes and timers: three workers more than there are cores.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 3)')
ROWS ?= 300
SEED ?= 10
TIME ?= 600
BUDGET ?= 60
TESTS ?= tests/unit tests/conformance
SEEDS ?= 0:10000

export NO_MKDOCS_2_WARNING := 1
# The tests start hundreds of processes: each would compile the library anew, and pytest rewrite every test.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint format types floors docs conformance native wheel generated generated-check mutate near near-map unit compiled nightly fuzz bench clean

demo: $(VENV)/.installed
	@PYTHON=$(BIN)/python sh examples/demo.sh

test: $(VENV)/.installed-dev
	$(MAKE) --no-print-directory -j 2 lint types docs generated-check native
	$(PYTEST) -n $(WORKERS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: $(VENV)/.installed-dev
	$(BIN)/mypy

floors: $(VENV)/.installed-dev
	$(PYTEST) -q tests/unit/test_floors.py

docs: conformance
	$(BIN)/python tools/pages/finding_docs.py
	$(BIN)/mkdocs build --strict --quiet

# Which requirement is proved by which test; fails for one without a test and without a reason.
conformance: $(VENV)/.installed-dev
	$(BIN)/python tools/pages/conformance.py

# The library of compiled functions, beside their package: captures are then read without waiting for a compiler.
native: $(VENV)/.installed-dev
	@$(BIN)/python packaging/native/build.py

# The wheel of this Python and platform, with what is compiled; auditwheel names the oldest Linux that it runs on.
wheel: $(VENV)/.installed-dev
	rm -rf build/wheel
	MSMQWIRE_NATIVE=1 $(BIN)/python -m build --wheel --no-isolation --outdir build/wheel
	@mkdir -p dist
	@if [ -x $(BIN)/auditwheel ]; then \
		PATH="$(CURDIR)/$(BIN):$$PATH" auditwheel repair --wheel-dir dist build/wheel/*.whl; \
	else cp build/wheel/*.whl dist; fi

# What is made of the declarations: readers and writers of structures and columns, parts of pages, the public API.
GENERATE := generate/codec_code generate/columnar_code generate/judge_code pages/srmp_docs pages/settings_docs pages/floors_docs pages/support_docs \
	pages/public_api pages/api_docs

generated: $(VENV)/.installed-dev
	@for tool in $(GENERATE); do $(BIN)/python tools/$$tool.py || exit; done
	$(BIN)/python tools/pages/packet_path.py --write

generated-check: $(VENV)/.installed-dev
	@$(BIN)/python tools/generate/codec_code.py # is not in git, so that nothing can be out of date there
	@for tool in $(GENERATE); do $(BIN)/python tools/$$tool.py --check || exit; done

mutate: $(VENV)/.installed-dev
	$(BIN)/python tools/mutate/mutate.py --rows $(ROWS) --seed $(SEED)

# What a change is tried with first: the tests that reach a file, as many as the time allows.
near: $(if $(FILE),$(VENV)/.installed-unit)
	@if [ -n "$(FILE)" ]; then $(BIN)/python -m tools.near $(FILE) --budget $(BUDGET); else \
		echo "Say which file: make near FILE=msmqwire/packets.py, with BUDGET=20 for 20 seconds" >&2; exit 2; fi

# Which test files run which source files: what near goes by, noted in build/near.
near-map: $(VENV)/.installed-unit
	$(BIN)/python -m tools.near --map $(TESTS)

# Needs no Spark, Java, browser or other program. CI is emptied, since in CI a test fails without its library or program.
unit: $(VENV)/.installed-unit
	CI= $(PYTEST) -n $(WORKERS) tests/unit

# The wheel that `make wheel` makes: built, installed and used.
compiled: native
	MSMQWIRE_TEST_COMPILED=1 $(PYTEST) -q tests/interop/test_compiled.py

# What takes long: before an issue is resolved, and at night.
nightly: native
	MSMQWIRE_HYPOTHESIS=nightly MSMQWIRE_TEST_COMPILED=1 $(PYTEST) -n $(WORKERS) --timeout=3600
	$(BIN)/python tools/torture/torture.py --kills 80
	$(BIN)/python tools/torture/findings.py --packets 300000
	$(BIN)/python tools/torture/lakes.py
	$(BIN)/python -m msmqwire.qm.sim --seeds $(SEEDS) --jobs 2
	$(BIN)/python -m fuzz.readers --time $(TIME)

# The readers, for so many seconds together: `make fuzz TIME=3600`. Corpora and findings are in build/fuzz.
fuzz: $(VENV)/.installed-dev
	$(BIN)/python -m fuzz.readers --time $(TIME)

bench: $(VENV)/.installed-dev
	@for script in benchmarks/*.py; do \
		if [ -f "$$script" ]; then echo "== $$script"; $(BIN)/python "$$script" || exit; fi; done

clean:
	rm -rf msmqwire/tables/_reader.* $(VENV) build dist site .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then \
		echo "No Python >= 3.11 with the venv module was found; name one: make PYTHON=/path/to/python3" >&2; exit 1; fi
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[columns]'
	@touch $@

$(VENV)/.installed-unit: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[unit]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[$(EXTRAS)]'
	@touch $@ $(VENV)/.installed $(VENV)/.installed-unit
