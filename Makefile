# Entry points. Each is a thin call of a script in scripts/, which says what it does and how long it took.
PYTHON ?= python3
RUN := .venv/bin/python

.PHONY: help build demo jobs-demo test test-sanitized test-long lint format docs gpu-test amd-test wheels release clean

help: ## Say what there is
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

build: ## Make .venv, build the C++ core and install the package in it for development
	@$(PYTHON) scripts/setup.py

demo: ## Measure this machine: table, route table and report.html in out/demo
	@$(PYTHON) scripts/setup.py peers ucx
	@$(RUN) scripts/demo.py

jobs-demo: ## Show the jobs monitor with real jobs on a virtual Slurm of this machine (root)
	@$(PYTHON) scripts/setup.py --system-packages jobs jobs-server trace test
	@$(RUN) jobs/tests/system/jobs_demo.py

test: ## Run the tests that need no GPU; it says how long the last run took and what it leaves out
	@$(PYTHON) scripts/setup.py --system-packages peers ucx cuda jax xacc jobs jobs-server jobs-postgresql trace test docs
	@$(RUN) scripts/test.py

test-sanitized: ## Run the C++ unit tests under ASan and UBSan
	@$(PYTHON) scripts/setup.py test
	@$(RUN) scripts/test.py --sanitized

test-long: ## As test, with sanitizers, fuzzing and what takes long; before a release
	@$(PYTHON) scripts/setup.py --system-packages peers ucx cuda jax xacc jobs jobs-server jobs-postgresql trace test docs
	@$(RUN) scripts/test.py --long

lint: ## Check style, types and common mistakes
	@$(PYTHON) scripts/setup.py jax xacc jobs jobs-server jobs-postgresql trace test lint
	@$(RUN) scripts/lint.py

format: ## Format all C++ and Python sources
	@$(PYTHON) scripts/setup.py lint
	@$(RUN) scripts/lint.py --fix

docs: ## Build the documentation site in site/
	@$(PYTHON) scripts/setup.py docs
	@NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs --quiet build --strict
	@echo "docs: site/index.html"

gpu-test: ## Run the GPU tests and a short GPU benchmark (docs/gpu-host.md)
	@$(PYTHON) scripts/setup.py gpu-test
	@$(RUN) scripts/gpu_test.py

amd-test: ## Test devices, `peerway cc` and Linpack on AMD GPUs, and print a report to send (docs/library/amd.md)
	@$(PYTHON) scripts/setup.py xacc gpu-test
	@$(RUN) scripts/amd_test.py

wheels: ## Download the wheels that a host with no network needs into wheels/ (docs/gpu-host.md)
	@$(PYTHON) scripts/setup.py
	@$(RUN) scripts/wheels.py

release: ## Build all that is published into out/release, try it, and print a checklist (docs/release.md)
	@$(PYTHON) scripts/setup.py release
	@$(RUN) scripts/release.py

clean: ## Remove everything that was built
	rm -rf .venv build out site wheels
