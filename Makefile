# localfields: `make test` and `make reproduce` need Python 3.11 or newer, git and make; nothing else.
# Each creates .venv from the hashed locks in requirements/ the first time, and reuses it afterwards.

# The interpreter .venv is made with, e.g. `make test PYTHON=python3.12`; empty: the best one on PATH.
PYTHON ?=

BIN := .venv/bin

# pyright ships in the lock: it need not ask whether there is a newer one.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

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

# $(call tests,MARKS): style, types, and the tests whose marks fit, those that need a browser last.
define tests
	$(call environment,dev)
	@echo "== ruff check";          $(BIN)/ruff check
	@echo "== ruff format --check"; $(BIN)/ruff format --check
	@echo "== pyright";             $(BIN)/pyright
	@echo "== pytest: unit tests and doctests"; \
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=30 --doctest-modules src tests -m "not browser$(1)"
	@echo "== pytest: browser tests"; \
	browser=$$(scripts/browser.sh) && status=0 || status=$$?; \
	case $$status in \
	0) LOCALFIELDS_BROWSER="$$browser" $(BIN)/pytest --durations=30 tests -m "browser$(1)" && status=0 || status=$$?; \
	   if [ $$status = 5 ]; then echo "There is a Chromium, but no browser test was collected." >&2; fi; \
	   exit $$status;; \
	3) echo; echo "SKIPPED: browser tests (no Chromium; the reason is above). Everything else passed.";; \
	*) exit $$status;; \
	esac
endef

test: ## check style, types and behavior: all tests but the slow ones
	$(call tests, and not slow)

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
