# Two commands on a fresh machine with Python >= 3.11: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: env demo test lint types imports unit serve fuzz test-slow test-peers compatibility conformance bench bench-full soak lock clean

env: $(READY)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed, this is %s. Name one: make PYTHON=python3.11 demo" % sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $(READY)

demo: env
	$(BIN)/plurnk-mcpd demo

serve: env
	$(BIN)/plurnk-mcpd serve

test: lint types imports unit

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: env
	$(BIN)/basedpyright

imports: env
	$(BIN)/lint-imports

# Three processes on two cores: most tests wait for other processes rather than compute. Each file stays in one.
unit: env
	$(BIN)/python -m pytest -n 3 --dist loadfile

# Mutated input for every parser of foreign bytes, for FUZZ_SECONDS (120) in all; FUZZ_SEED repeats a run.
fuzz: env
	$(BIN)/python -m tests.fuzz $(TARGETS)

# What takes a minute or more by itself: a thousand workspaces at once.
test-slow: env
	$(BIN)/python -m pytest -m slow

# Published servers in environments of their own; needs the package registries.
test-peers: env
	$(BIN)/python -m pytest -m peers -rs tests/peers

# The same wall of published servers; docs/compatibility.md is rewritten from what came of it.
compatibility: env
	$(BIN)/python -m pytest -m peers tests/peers/test_published.py --rewrite

# The official MCP suite in three modes and two releases; needs a registry for the suite itself.
conformance: env
	$(BIN)/python -m pytest -m conformance -rs tests/conformance

# The daemon beside its peers, on a quiet machine: less than four minutes; every scenario, ten minutes of full load among them.
bench: env
	$(BIN)/python -m benchmarks

bench-full: env
	$(BIN)/python -m benchmarks --full

# Three minutes of everything at once; SOAK_MINUTES=120 for two hours, SOAK_SEED= to have the same chance again.
soak: env
	$(BIN)/python -m tests.soak

lock: env
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --generate-hashes \
		--no-header --group dev pyproject.toml --output-file requirements.lock

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
