# Each target installs what it needs. The only requirement is Python 3.11 or newer.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BIN := .venv/bin
# Empty files that record when a step was last done.
STAMP := .venv/.installed
COMPILED := .venv/.compiled
WEB := .venv/.web
PLOTTING := .venv/.plotting
DOCS := .venv/.docs
DIST_TOOLS := build/dist-tools
SOURCES := $(shell find src -name '*.py')
WEB_SOURCES := $(shell find web -path web/node_modules -prune -o -type f -print)
PYTHONS ?= python3 python3.14 python3.13 python3.12 python3.11 python
# Every file that is installed must have one of the hashes in these.
LOCKED := --require-hashes --no-deps -r requirements/runtime.lock -r requirements/dev.lock
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))

ARGS ?=
SIM_HISTORIES ?= 100000
SIM_SEED ?=
SIM_MINUTES ?=
SOAK_KILLS ?= 500
CLUSTER_KILLS ?= 50
FUZZ_EXAMPLES ?= 5000
WEIGHTS ?= yes
# The interpreter that `make test-python` uses.
PYTHON ?=
INSTALL_SUITE ?= bookworm
# The version that `make test-install` upgrades from: the last release, or else the sources of some time ago.
INSTALL_PREVIOUS ?= $(shell git describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null || \
	git rev-list --first-parent -n 1 --skip=40 HEAD 2>/dev/null)
# Bytecode is written whatever the environment says: every worker and every server of a test would compile the tests anew.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 4 -q
PEERS := litellm open-webui
PEER_litellm := litellm[proxy]
PEER_open-webui := open-webui

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help install run test test-all check lock docs bench bench-peers sim mutants fuzz soak screenshots clean chromium servers clients \
	test-agents test-openviking test-interop test-python dist test-install

help: ## Print this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) $(COMPILED) $(WEB) ## Set up .venv, build the web app, download a small local model (WEIGHTS=no: skip it).
	@echo "Holdfast is installed. Start it with: make run"

run: $(STAMP) $(COMPILED) $(WEB) ## Serve on http://127.0.0.1:8484 (HOLDFAST_HOST, HOLDFAST_PORT, HOLDFAST_DATA_DIR; flags go in ARGS).
	@exec $(BIN)/holdfast serve --no-model $(ARGS)

test: $(STAMP) $(COMPILED) $(WEB) chromium servers clients ## Run the tests.
	@$(PYTEST)

test-all: $(STAMP) $(COMPILED) $(WEB) chromium servers clients ## Run the tests in their long versions too (most of an hour).
	@$(PYTEST) -m "not openviking and not agents and not interop" --hypothesis-profile=long
	@$(BIN)/python -m tests.sim --histories 2000
	@$(BIN)/python -m tests.fuzz --examples $(FUZZ_EXAMPLES)

check: $(STAMP) ## Check formatting, lint, types, names, sizes, the direction of imports, the width of Markdown.
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python docs/check_markdown.py
	$(BIN)/python tests/check_structure.py
	$(BIN)/python web/build.py check
	$(BIN)/python requirements/lock.py --check

# uv comes from PyPI without a hash: what it writes is reviewed.
lock: $(STAMP) ## Update the locked versions and hashes in requirements (ARGS=--upgrade: to the newest versions).
	@test -x build/uv/bin/uv || { $(BIN)/python -m venv build/uv && build/uv/bin/python -m pip install -q uv; }
	@PATH="$$PWD/build/uv/bin:$$PATH" $(BIN)/python requirements/lock.py $(ARGS)

docs: $(DOCS) ## Build the documentation site into build/docs.
	@$(BIN)/python docs/build_site.py

bench: $(STAMP) $(COMPILED) $(PLOTTING) ## Measure beside other servers and print a table (ARGS=--quick, ARGS='--only resume').
	@$(BIN)/python -m bench $(ARGS)

bench-peers: $(addprefix .peers/,$(addsuffix /.installed,$(PEERS))) ## Install the servers that `make bench` compares with.

sim: $(STAMP) ## Run simulated histories with injected faults (SIM_HISTORIES, SIM_SEED, SIM_MINUTES).
	@$(BIN)/python -m tests.sim --histories $(SIM_HISTORIES) \
		$(if $(SIM_SEED),--seed $(SIM_SEED)) $(if $(SIM_MINUTES),--minutes $(SIM_MINUTES))

mutants: $(STAMP) ## Break each guard on purpose and check that a test fails.
	@$(BIN)/python -m tests.mutants

fuzz: $(STAMP) ## Send generated requests, valid and broken, to the HTTP API (FUZZ_EXAMPLES).
	@$(BIN)/python -m tests.fuzz --examples $(FUZZ_EXAMPLES)

soak: $(STAMP) servers ## Kill real servers with -9, restart them, compare (SOAK_KILLS, CLUSTER_KILLS).
	@$(BIN)/python -m tests.crash --kills $(SOAK_KILLS)
	@$(BIN)/python -m tests.cluster --kills $(CLUSTER_KILLS)

test-python: ## Run the tests of the last commit on another Python (PYTHON=/path/to/python3.13), in build/python3.13.
	@[ -n "$(PYTHON)" ] || { echo "Name an interpreter: make test-python PYTHON=/path/to/python3.13" >&2; exit 1; }
	@clone=build/python$$("$(PYTHON)" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	[ -d $$clone ] || git clone -q . $$clone; \
	git -C $$clone fetch -q origin HEAD && git -C $$clone checkout -q --detach FETCH_HEAD && \
	$(MAKE) -C $$clone test PYTHONS="$(PYTHON)"

test-agents: $(STAMP) $(COMPILED) ## Test with the real Hermes Agent and npm's agent programs, in build/hermes and build/adapters.
	@build/hermes/bin/python -c 'import acp_adapter, aiohttp' 2>/dev/null || { \
		$(BIN)/python -m venv build/hermes; \
		build/hermes/bin/python -m pip install -q 'hermes-agent[acp,messaging]==0.19.0'; \
	}
	@$(BIN)/python -m tests.acp.adapters
	@HOLDFAST_HERMES=$$PWD/build/hermes/bin/hermes-acp $(BIN)/python -m pytest -q -m agents tests/acp

test-openviking: $(STAMP) ## Test memory with a real OpenViking server, installed into build/openviking (large).
	@test -x build/openviking/bin/openviking-server || { \
		$(BIN)/python -m venv build/openviking; \
		build/openviking/bin/python -m pip install -q openviking==0.5.2; \
	}
	@HOLDFAST_OPENVIKING=$$PWD/build/openviking/bin/openviking-server \
		$(BIN)/python -m pytest -q -m openviking tests/memory/test_real_openviking.py

# A program that cannot be installed makes its tests fail, with the reason.
test-interop: $(STAMP) $(COMPILED) ## Test with SDKs, coding agents and MCP servers of others, installed into build/interop (3 GB).
	@$(BIN)/python -m tests.interop.environments
	@$(PYTEST) --dist=loadfile -m interop tests/interop

dist: $(DIST_TOOLS) ## Build the wheel and the source distribution into dist.
	@rm -rf dist
	@$(DIST_TOOLS)/bin/python -m build --no-isolation --outdir dist . > build/dist.log 2>&1 || { tail -n 30 build/dist.log >&2; exit 1; }
	@$(DIST_TOOLS)/bin/twine check --strict dist/*
	@ls -l dist

# The previous version gets a lower number, so that pip upgrades from it.
test-install: $(STAMP) dist ## Install the wheel in a bare Debian root, chat, kill -9, upgrade, uninstall (root, mmdebstrap).
	@[ -n "$(INSTALL_PREVIOUS)" ] || { echo "Name a commit to upgrade from: INSTALL_PREVIOUS=…" >&2; exit 1; }
	@previous=build/previous-$$(git rev-parse --short "$(INSTALL_PREVIOUS)^{commit}"); \
	if ! ls $$previous/*.whl >/dev/null 2>&1; then \
		rm -rf $$previous && mkdir -p $$previous/source; \
		git archive "$(INSTALL_PREVIOUS)" | tar -x -C $$previous/source; \
		sed -i 's/^__version__ = .*/__version__ = "0.0.9"/' $$previous/source/src/holdfast/__init__.py; \
		$(DIST_TOOLS)/bin/python -m build --no-isolation --wheel --outdir $$previous $$previous/source > $$previous/build.log 2>&1 || \
			{ tail -n 30 $$previous/build.log >&2; exit 1; }; \
		rm -rf $$previous/source; \
	fi; \
	command -v mmdebstrap >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get install -qq -y --no-install-recommends mmdebstrap >/dev/null 2>&1; } || true; \
	$(BIN)/python -m tests.install --suite $(INSTALL_SUITE) --archive build/debian-$(INSTALL_SUITE).tar \
		--wheel dist/*.whl --previous $$previous/*.whl

$(DIST_TOOLS):
	@$(BIN)/python -m venv $@ 2>/dev/null || python3 -m venv $@
	@$@/bin/python -m pip install -q --require-hashes -r requirements/node.lock -r requirements/dist.lock || { rm -rf $@; exit 1; }

screenshots: $(STAMP) $(WEB) chromium ## Take the screenshots that the documentation shows.
	@$(BIN)/python -m tests.browser.screenshots

# A server that cannot be installed is left out of the table, with the reason.
.peers/%/.installed:
	@echo "Installing $* (minutes, and some gigabytes)"
	@python=$$($(BIN)/python -c 'import sys; print(sys._base_executable)' 2>/dev/null || echo python3); \
		rm -rf .peers/$* && "$$python" -m venv .peers/$* && \
		if .peers/$*/bin/python -m pip install -q '$(PEER_$*)'; then touch $@; else rm -rf .peers/$*; echo "$* could not be installed" >&2; fi

$(PLOTTING): $(STAMP) requirements/bench.lock
	@$(BIN)/python -m pip install -q --require-hashes --no-deps -r requirements/bench.lock || echo "matplotlib could not be installed: no plots" >&2
	@touch $@

clean: ## Remove the environment, caches and build output, but no data directory.
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist \
		.peers web/node_modules tests/openai/node/node_modules src/holdfast/server/static/app
	@find src tests bench docs -type d -name __pycache__ -prune -exec rm -rf {} +

$(STAMP): pyproject.toml requirements/runtime.lock requirements/dev.lock
	@if ! $(BIN)/python -c '$(NEW_ENOUGH)' 2>/dev/null; then \
		found=; \
		for each in $(PYTHONS); do \
			if "$$each" -c '$(NEW_ENOUGH)' 2>/dev/null; then found=$$each; break; fi; \
		done; \
		if [ -z "$$found" ]; then \
			echo "Holdfast needs Python 3.11 or newer; python3 is: $$(python3 --version 2>&1 || true)" >&2; \
			echo "Install a newer one, or name it: make install PYTHONS=/path/to/python3.12" >&2; \
			exit 1; \
		fi; \
		echo "Creating .venv with $$("$$found" --version)"; \
		"$$found" -m venv --clear .venv || { \
			rm -rf .venv; \
			echo "Could not create .venv: $$found lacks the venv module (Debian, Ubuntu: apt install python3-venv)." >&2; \
			exit 1; \
		}; \
	fi
	@echo "Installing the Python packages (a few minutes the first time)"
	@{ $(BIN)/python -m pip install $(LOCKED) && \
		$(BIN)/python -m pip install --no-deps --no-build-isolation -e .; } > .venv/install.log 2>&1 || { \
		tail -n 30 .venv/install.log >&2; \
		echo "The Python packages could not be installed; the whole output is in .venv/install.log" >&2; \
		exit 1; \
	}
	@$(if $(filter no,$(WEIGHTS)),:,$(BIN)/holdfast models pull || echo "Holdfast works without the local model." >&2)
	@touch $@

$(DOCS): $(STAMP) requirements/docs.lock
	@$(BIN)/python -m pip install -q --require-hashes --no-deps -r requirements/docs.lock
	@touch $@

# Without this Python compiles at the first start, or at every start if PYTHONDONTWRITEBYTECODE is set.
$(COMPILED): $(STAMP) $(SOURCES)
	@$(BIN)/python -m compileall -q src/holdfast || true
	@touch $@

# The server works without the web app, so a failed build is reported and does not stop the installation.
$(WEB): $(STAMP) $(WEB_SOURCES)
	@if $(BIN)/python web/build.py; then touch $@; fi

# Installs the OpenAI and Vercel clients for the tests of the OpenAI-compatible API; without npm those are skipped.
clients: $(STAMP)
	@$(BIN)/python -m tests.openai.node_clients

# The browser tests use Debian's Chromium, as a headless shell where that is packaged. Without it they are skipped, with a message.
chromium:
	@if ! command -v chromium-headless-shell >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing chromium for the browser tests"; \
		(apt-get update -qq && { apt-get install -qq -y --no-install-recommends chromium-headless-shell || \
			apt-get install -qq -y --no-install-recommends chromium; }) >/dev/null 2>&1 || true; \
	fi

# The tests start their own PostgreSQL, Redis, nginx, Caddy and bubblewrap from Debian's packages, and check the compose files with
# Docker Compose. Not every system has a package of the last two. policy-rc.d keeps the installation from starting the services.
servers:
	@missing=; more=; \
	ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || missing="$$missing postgresql"; \
	command -v redis-server >/dev/null || missing="$$missing redis-server"; \
	command -v bwrap >/dev/null || missing="$$missing bubblewrap"; \
	[ -x /usr/sbin/nginx ] || command -v nginx >/dev/null || missing="$$missing nginx-light"; \
	command -v caddy >/dev/null || more="$$more caddy"; \
	command -v docker-compose >/dev/null || more="$$more docker-compose"; \
	if [ -n "$$missing$$more" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing$$missing$$more for the tests"; \
		mkdir -p /etc/postgresql-common; \
		[ -e /etc/postgresql-common/createcluster.conf ] || \
			echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf; \
		[ -e /usr/sbin/policy-rc.d ] || { printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d; \
			chmod +x /usr/sbin/policy-rc.d; made=1; }; \
		install() { DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
			-o Dpkg::Options::=--force-confold "$$@" >/dev/null 2>&1; }; \
		apt-get update -qq >/dev/null 2>&1 || true; \
		[ -z "$$missing" ] || { install $$missing && missing=; } || true; \
		for each in $$more; do install $$each && more="$${more/ $$each/}" || true; done; \
		[ -z "$${made:-}" ] || rm -f /usr/sbin/policy-rc.d; \
	fi; \
	[ -z "$$more" ] || echo "Some tests of proxies and compose files are skipped. Missing:$$more" >&2; \
	if [ -n "$$missing" ]; then \
		echo "***" >&2; \
		echo "*** NOT TESTED: storage on PostgreSQL and Redis, the cluster, or the sandbox. Missing:$$missing" >&2; \
		echo "*** Install these packages, or run \`make test\` as root on Debian." >&2; \
		echo "***" >&2; \
	fi
