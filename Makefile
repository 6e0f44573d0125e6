# localfields: `make test` and `make reproduce` need Python 3.11 or newer, git and make; nothing else.
# Each creates .venv from the hashed locks in requirements/ the first time, and reuses it afterwards.

# The interpreter .venv is made with, e.g. `make test PYTHON=python3.12`; empty: the best one on PATH.
PYTHON ?=

BIN := .venv/bin

# Processes that run tests side by side, e.g. `make test WORKERS=8`.
WORKERS ?= 2
# Further options of pytest, e.g. `make test OPTIONS=-x`.
OPTIONS ?=

# pyright ships in the lock: it need not ask whether there is a newer one.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start many processes; each would compile the package anew if bytecode were not kept.
export PYTHONDONTWRITEBYTECODE :=

.NOTPARALLEL:
.PHONY: help test test-all reproduce app docs bench errata lint typecheck format lock clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | awk -F'|' '{printf "make %-10s %s\n", $$1, $$2}'

# Sets $$python to the interpreter to make .venv with, or says what to do and fails. Python 3.11 to 3.14 have
# wheels in the locks; among those the newest wins, and anything newer is a last resort. A name on PATH
# counts only if it runs: a version manager's shim may not.
define find_python
best=0; python=; incomplete=; \
for candidate in $(if $(PYTHON),"$(PYTHON)",python3 python3.13 python3.12 python3.11); do \
	rank=$$("$$candidate" -c 'import sys; v = sys.version_info; print(v[0] * 100 + v[1])' 2>/dev/null) || continue; \
	[ "$$rank" -ge 311 ] || continue; \
	if [ "$$rank" -gt 314 ]; then rank=1; fi; \
	if ! "$$candidate" -c 'import ensurepip, venv' 2>/dev/null; then incomplete="$$candidate"; continue; fi; \
	if [ "$$rank" -gt "$$best" ]; then best=$$rank; python="$$candidate"; fi; \
done; \
if [ -z "$$python" ] && [ -n "$$incomplete" ]; then \
	echo "$$incomplete has no venv module. Install it (Debian, Ubuntu: apt install python3-venv) and run make again." >&2; \
	exit 1; \
elif [ -z "$$python" ]; then \
	echo "No Python 3.11 or newer that runs: looked for $(if $(PYTHON),$(PYTHON),python3 python3.13 python3.12 python3.11)." >&2; \
	echo "Install one, or name it: make PYTHON=/path/to/python3.12" >&2; \
	exit 1; \
fi
endef

# $(call environment,LOCK): .venv holds what requirements/LOCK.lock asks for, and this package, editable.
# A stamp in .venv is a copy of what was installed: this folder's path and the lock. It is written last, so an
# interrupted installation has none; where no stamp fits, .venv is made anew. The dev lock contains the
# reproduce lock, so its stamp serves both, and the dev lock can be installed on top of the other.
define environment
	@set -eu; log=.venv/install.log; \
	wanted() { pwd; cat "requirements/$$1.lock"; }; \
	has() { wanted "$$1" | cmp -s - ".venv/.installed-$$1"; }; \
	version() { "$$1" -c 'import sys; print(sys.version)' 2>/dev/null; }; \
	failed() { tail -n 30 $$log >&2; echo "The installation failed; its whole output is in $$log." >&2; exit 1; }; \
	usable=no; \
	if version $(BIN)/python >/dev/null && { has dev || has reproduce; }; then usable=yes; fi; \
	if [ -n "$(PYTHON)" ] && [ "$$(version $(BIN)/python)" != "$$(version "$(PYTHON)")" ]; then usable=no; fi; \
	if [ $$usable = no ]; then \
		$(find_python); \
		echo "Creating .venv with $$("$$python" --version)"; \
		rm -rf .venv; "$$python" -m venv .venv; \
	fi; \
	if ! has dev && ! has $(1); then \
		rm -f .venv/.installed-*; \
		echo "Installing $$(grep -c == requirements/$(1).lock) packages of requirements/$(1).lock (a minute or two) ..."; \
		$(BIN)/python -m pip install --no-input --require-hashes -r requirements/$(1).lock >$$log 2>&1 || failed; \
		wanted $(1) >.venv/stamp.tmp; mv .venv/stamp.tmp .venv/.installed-$(1); \
	fi; \
	if ! cmp -s pyproject.toml .venv/.installed-package; then \
		echo "Installing localfields itself, editable"; \
		$(BIN)/python -m pip install --no-input --no-deps --no-build-isolation -e . >$$log 2>&1 || failed; \
		cp pyproject.toml .venv/stamp.tmp; mv .venv/stamp.tmp .venv/.installed-package; \
	fi
endef

# $(call tests,MARKS): style, types, and the tests whose marks fit. pyright uses one thread, so it runs beside the
# tests; without a Chromium everything but the browser tests runs, and the end says so.
define tests
	$(call environment,dev)
	@echo "== ruff check";          $(BIN)/ruff check
	@echo "== ruff format --check"; $(BIN)/ruff format --check
	@browser=$$(scripts/browser.sh) && marks="$(1)" || { \
		status=$$?; [ $$status = 3 ] || exit $$status; marks="not browser$(if $(1), and $(1))"; \
	}; \
	echo "== pytest (pyright runs beside it)"; \
	types=$$(mktemp); $(BIN)/pyright >"$$types" 2>&1 & checker=$$!; \
	LOCALFIELDS_BROWSER="$$browser" $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
		--durations=30 --doctest-modules src tests $${marks:+-m "$$marks"} $(OPTIONS) && status=0 || status=$$?; \
	echo "== pyright"; wait $$checker || status=1; cat "$$types"; rm -f "$$types"; \
	if [ -z "$$browser" ]; then echo "SKIPPED: browser tests (no Chromium; the reason is above)."; fi; \
	exit $$status
endef

test: ## check style, types and behavior: all tests but the slow ones
	$(call tests,not slow)

# Here programs are compiled as for users; otherwise tests do not optimize them, which takes half the time.
test-all: export XLA_FLAGS :=
test-all: ## check everything: all tests
	@scripts/slurm.sh || echo "NOT TESTED: jobs of SLURM itself (the reason is above). They are tested on a stand-in."
	$(call tests)

reproduce: ## recompute every result of the project
	$(call environment,reproduce)
	@$(BIN)/localfields reproduce

app: ## open the explorer on this machine, at http://127.0.0.1:5006
	$(call environment,dev)
	@$(BIN)/localfields app

docs: ## build the documentation into site/, with the report if there is one
	$(call environment,dev)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@if [ -f report/report.html ]; then mkdir -p site/report; cp report/report.html report/claims.json site/report/; fi
	@echo "The site: site/index.html (its mathematics need a server: $(BIN)/python -m http.server -d site)"

bench: ## run the benchmarks
	$(call environment,dev)
	@$(BIN)/pytest benchmarks -q -s

errata: ## write docs/errata.md again, with the numbers its tests measure
	$(call environment,dev)
	@PYTHONPATH=tests $(BIN)/python -m errata.write

lint: ## check style alone
	$(call environment,dev)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

typecheck: ## check types alone
	$(call environment,dev)
	@$(BIN)/pyright

format: ## rewrite the code in the project's style
	$(call environment,dev)
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

lock: ## resolve the dependencies again (requirements/lock.sh --upgrade moves to newer versions)
	@requirements/lock.sh

clean: ## remove the environment, caches and builds, not results
	@rm -rf .venv .cache .pytest_cache .ruff_cache .hypothesis .benchmarks build dist site
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
