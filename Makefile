# Each target is enough on a fresh machine with Python >= 3.11, git and make.
# Another interpreter:  make demo PYTHON=python3.12

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
JOBS   ?= 2
PYTEST_ARGS ?=
SECONDS ?= 3600

PIP := -m pip --python $(BIN)/python install --quiet --no-compile --disable-pip-version-check
# uv needs an eighth of pip's time, but does not read pip's settings, such as a private index.
INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt pip -e ".[$(EXTRAS)]" \
	|| "$(PYTHON)" $(PIP) -c constraints.txt -e ".[$(EXTRAS)]"

.PHONY: help demo test test-all fuzz ptxas peers lint format types notebooks benchmarks benchmarks-smoke docs dist clean
.DELETE_ON_ERROR:

help:
	@echo "make demo              compare formulations, fit the racket, write figures to out/"
	@echo "make test              all tests, then those for single precision once more"
	@echo "make test-all          those and the long statistics and whole grids"
	@echo "make fuzz              random jaxprs and systems for SECONDS=$(SECONDS); failures are in out/fuzz"
	@echo "make ptxas             install NVIDIA's assembler, for the tests of kernels for GPUs"
	@echo "make peers             install the programs and models that benchmarks and test-all compare with"
	@echo "make lint              ruff"
	@echo "make format            ruff, rewriting files"
	@echo "make types             pyright"
	@echo "make notebooks         run every notebook for make docs; STORE=1 stores text and figures in the files"
	@echo "make benchmarks        run every benchmark with the other programs, some five hours; write tables and figures"
	@echo "make benchmarks-smoke  run every benchmark on its smallest case"
	@echo "make docs              build the documentation into site/"
	@echo "make dist              build the wheel and the sdist, install the wheel in a clean environment, try it"
	@echo "make clean             remove the virtual environment and all caches"

$(VENV)/.created:
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "make: no interpreter '$(PYTHON)'; try: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: rigidjax needs Python 3.11 or newer; '$(PYTHON)' is $$("$(PYTHON)" --version 2>&1)." >&2; \
	  echo "      Name a newer one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@echo "Creating $(VENV) with $$("$(PYTHON)" --version 2>&1)"
	@"$(PYTHON)" -m venv --clear --without-pip $(VENV)
	@if "$(PYTHON)" -m pip --version >/dev/null 2>&1; \
	  then "$(PYTHON)" $(PIP) uv; \
	  else $(BIN)/python -m ensurepip >/dev/null && $(BIN)/python $(PIP) uv; fi || { \
	  echo "make: pip failed; '$(PYTHON)' may lack it (on Debian and Ubuntu: install python3-venv)" >&2; exit 1; }
	@touch $@

$(VENV)/.installed: EXTRAS = cli,plot
$(VENV)/.installed: $(VENV)/.created pyproject.toml constraints.txt
	@echo "Installing rigidjax into $(VENV)"
	@$(INSTALL)
	@touch $@

$(VENV)/.installed-test: EXTRAS = test
$(VENV)/.installed-test: $(VENV)/.created pyproject.toml constraints.txt
	@echo "Installing rigidjax and its test tools into $(VENV)"
	@$(INSTALL)
	@touch $(VENV)/.installed $@

$(VENV)/.installed-ptxas: EXTRAS = test,ptx
$(VENV)/.installed-ptxas: $(VENV)/.installed-test
	@echo "Installing ptxas into $(VENV)"
	@$(INSTALL)
	@touch $@

ptxas: $(VENV)/.installed-ptxas

$(VENV)/.installed-peers: EXTRAS = test,peers
$(VENV)/.installed-peers: $(VENV)/.installed-test
	@echo "Installing other programs and published models into $(VENV)"
	@$(INSTALL)
	@touch $@

peers: $(VENV)/.installed-peers

demo: $(VENV)/.installed
	$(BIN)/rigidjax demo

# Files with tests in single precision; to collect all others takes longer than to run these.
FLOAT32 = $(if $(PYTEST_ARGS),,$(shell grep -rl --include='test_*.py' 'mark.float32' tests))

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --durations=20 $(PYTEST_ARGS)
	RIGIDJAX_TEST_X64=0 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(PYTEST_ARGS) $(FLOAT32)

test-all: export RIGIDJAX_TEST_ALL=1
test-all: peers test

fuzz: $(VENV)/.installed-test
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check

format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: $(VENV)/.installed-test
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright

# Two at a time by default; each prints its name when it is done. `make docs` shows their results,
# and STORE=1 writes them into the notebooks, without views.
notebooks: $(VENV)/.installed-test
	@rm -rf .cache/notebooks && mkdir -p .cache/notebooks
	@printf '%s\n' notebooks/*.ipynb | MPLBACKEND=module://matplotlib_inline.backend_inline \
	  xargs -P $(JOBS) -I FILE sh -c \
	  '$(BIN)/jupyter-execute --timeout=600 --output=../.cache/notebooks/{notebook_name} FILE && echo FILE || { echo "FILE failed" >&2; exit 1; }'
	$(if $(STORE),$(BIN)/python tools/notebook_results.py)

# One after the other, on an otherwise idle machine; those of a GPU need one.
benchmarks: peers
	for file in $(filter-out benchmarks/gpu.py benchmarks/report.py,$(wildcard benchmarks/[!_]*.py)); do \
	  $(BIN)/python $$file || exit 1; done
	$(BIN)/python benchmarks/report.py

# A benchmark given --smoke runs its smallest case, prints its rows and writes no file.
benchmarks-smoke: $(VENV)/.installed-test
	@printf '%s\n' benchmarks/[!_]*.py | xargs -P $(JOBS) -I FILE sh -c \
	  '$(BIN)/python FILE --smoke && echo FILE || { echo "FILE failed" >&2; exit 1; }'

$(VENV)/.installed-docs: EXTRAS = test,docs
$(VENV)/.installed-docs: $(VENV)/.installed-test
	@echo "Installing the tools of the documentation into $(VENV)"
	@$(INSTALL)
	@touch $@

# Warnings are errors; a link inside of the site that leads nowhere is a warning.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The wheel is built from the sdist, installed where nothing of the repository is seen, and tried there.
dist: $(VENV)/.installed-test
	rm -rf dist build/clean
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m build --outdir dist .
	$(BIN)/python -m venv --clear build/clean
	build/clean/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	git ls-files rigidjax | build/clean/bin/python -I .ci/installed.py dist/*.whl

clean:
	rm -rf site $(VENV) .cache .pytest_cache .ruff_cache .hypothesis build dist
