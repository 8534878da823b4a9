# Everything a fresh machine needs besides Python 3.11+ and make is set up by these targets.

# The first interpreter that is new enough; `make PYTHON=... <target>` overrides.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$p" -c '$(NEW_ENOUGH)' 2>/dev/null && echo "$$p" && break; done)

# An interpreter that was asked for has an environment of its own: .venv-3.13, .venv-3.14t.
ifneq ($(filter command environment,$(origin PYTHON)),)
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2] + sys.abiflags)')
VENV := .venv-$(VERSION)
else
VENV := .venv
endif
OLDEST := .venv-oldest
PEERS := .venv-peers
STANDARD := .venv-array-api
AUTOGRADS := .venv-autograd
ECOSYSTEM := .venv-ecosystem
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
TORCH := torch==2.13.0
AUTOGRAD := autograd==1.9.1
JAX := jax==0.10.2 jaxlib==0.10.2
SOLVERS := torchdiffeq==0.2.5 diffrax==0.7.2 optimistix==0.1.0 sparsejac==0.2.0

# Extra arguments: make test ARGS="-k matmul", make bench ARGS="--quick --only compiled-small".
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-levels test-plain test-oldest test-torch test-sklearn test-array-api test-autograd test-ecosystem lint format bench bench-before house clean

help:
	@echo "make demo        train a convolution net on digits and check what it did"
	@echo "make test        run the tests and every example in the documentation"
	@echo "make test-all    every test, every combination, for every CPU level; takes hours"
	@echo "make test-levels  the tests with code for each CPU level that this CPU has"
	@echo "make test-plain  the tests of the core without native pieces that can be switched off"
	@echo "make test-oldest  the tests with the oldest version of each dependency"
	@echo "make test-torch  compare every op that PyTorch has with it"
	@echo "make test-sklearn  scikit-learn's functions on tensors"
	@echo "make test-array-api SUITE=...  the Array API consortium's own tests"
	@echo "make test-autograd SUITE=...  autograd's own tests and examples"
	@echo "make test-ecosystem  packages from PyPI that use autograd or NumPy"
	@echo "make lint        ruff and mypy"
	@echo "make format      let ruff rewrite the files"
	@echo "make bench       measure against NumPy, PyTorch, JAX and autograd"
	@echo "make bench-before COMMIT=...  measure against an earlier state of gradtape itself"
	@echo "make house       lines of code, modules that a call loads, frames of the call paths"
	@echo "make clean       remove what these targets made"

# The stamp is touched last, so an interrupted install is done again.
$(VENV)/.stamp: pyproject.toml
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer found; make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python $(PIP_INSTALL) --editable '.[test,lint]'
	@touch $@

# Peers have an environment of their own, so that none of them can become a dependency by accident.
# Their versions stand in this file. torch.compile needs a C++ compiler; without one it is left out.
$(PEERS)/.stamp: pyproject.toml Makefile
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer found; make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python $(PIP_INSTALL) --editable .
	$(PEERS)/bin/python $(PIP_INSTALL) $(TORCH)
	$(PEERS)/bin/python $(PIP_INSTALL) $(AUTOGRAD)
	$(PEERS)/bin/python $(PIP_INSTALL) $(JAX) $(SOLVERS)
	@touch $@

demo: $(VENV)/.stamp
	$(VENV)/bin/gradtape demo

# Two workers with two spinning BLAS pools fight over the cores; one BLAS thread each is faster. Some
# tests start processes, which would compile the package again each if bytecode were not kept.
SETTINGS := OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
PYTEST := $(SETTINGS) $(VENV)/bin/python -m pytest

test: $(VENV)/.stamp
	$(PYTEST) -n 2 $(ARGS)

# Slow tests, too: forks, interrupts, long fuzzing, every entry of every Jacobian.
test-all: $(VENV)/.stamp
	$(PYTEST) -n 2 -m "" --thorough $(ARGS)
	$(MAKE) test-levels test-plain

# NumPy and OpenBLAS are turned down with our own code. NumPy 2.4 and later have these names.
NUMPY_WITHOUT_x86-64-v2 := X86_V3 X86_V4 AVX512_ICL AVX512_SPR
NUMPY_WITHOUT_x86-64-v3 := X86_V4 AVX512_ICL AVX512_SPR
OPENBLAS_x86-64-v2 := Nehalem
OPENBLAS_x86-64-v3 := Haswell
OPENBLAS_x86-64-v4 := SkylakeX
LEVELS_HERE := from gradtape.compiler.cpu.llvm.link import levels; print(*levels())

test-levels: $(VENV)/.stamp
	for level in $$($(VENV)/bin/python -c '$(LEVELS_HERE)'); do $(MAKE) test-level LEVEL=$$level || exit 1; done

.PHONY: test-level
test-level: $(VENV)/.stamp
	GRADTAPE_CPU=$(LEVEL) NPY_DISABLE_CPU_FEATURES="$(NUMPY_WITHOUT_$(LEVEL))" \
	OPENBLAS_CORETYPE=$(OPENBLAS_$(LEVEL)) $(PYTEST) -n 2 $(ARGS)

# What carries the others: tapes, contexts, transforms, writes, compiled functions, linear algebra,
# threads. Two minutes at most.
CORE := $(addsuffix .py, \
	$(addprefix tests/autodiff/test_,tape nested_tapes contexts context_grads transforms vmap \
		jacobians higher_order custom no_grad) \
	$(addprefix tests/core/test_,modes records) \
	$(addprefix tests/graph/test_,captures) \
	$(addprefix tests/ops/test_,write setitem into elementwise) \
	$(addprefix tests/ops/arrays/test_,numpy_writes) \
	$(addprefix tests/ops/nn/test_,conv) \
	$(addprefix tests/ops/linalg/test_,lapack scipy_linalg matrix_functions degenerate_second) \
	$(addprefix tests/kernels/test_,tiles copies) \
	$(addprefix tests/compiler/test_,fusion jit jit_calls jit_arguments jit_dicts jit_transforms \
		jit_writes compiled_draws halves) \
	$(addprefix tests/compiler/cpu/test_,entry entry_otherwise threads) \
	$(addprefix tests/optim/test_,native_steps) \
	$(addprefix tests/package/test_,switches))

test-plain: $(VENV)/.stamp
	GRADTAPE_WITHOUT=all $(PYTEST) -n 2 $(CORE) $(ARGS)

# The lower bounds of pyproject.toml, each as an exact version. NumPy 2.0 has wheels for Python 3.11
# and 3.12; newer interpreters need a newer NumPy in any case.
BOUNDS := import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	wanted = p["dependencies"] + p["optional-dependencies"]["test"]; \
	print(*(bound.replace(">=", "==") for bound in wanted), sep="\n")
OLD_ENOUGH := import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))

$(OLDEST)/.stamp: pyproject.toml
	@$(PYTHON) -c '$(OLD_ENOUGH)' || { echo "the oldest dependencies need Python 3.11 or 3.12; \
	make PYTHON=python3.11 test-oldest" >&2; exit 1; }
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -c '$(BOUNDS)' > $(OLDEST)/bounds.txt
	$(OLDEST)/bin/python $(PIP_INSTALL) --constraint $(OLDEST)/bounds.txt --editable '.[test]'
	@touch $@

test-oldest: $(OLDEST)/.stamp
	$(SETTINGS) $(OLDEST)/bin/python -m pytest -n 2 $(ARGS)

# Peers have what they need to run, not what tests need.
test-torch: $(PEERS)/.stamp
	$(PEERS)/bin/python $(PIP_INSTALL) --editable '.[test]'
	$(SETTINGS) $(PEERS)/bin/python -m pytest tests/package/test_torch.py tests/optim/test_optim.py \
	tests/advice/test_elsewhere.py tests/nn $(ARGS)

# scikit-learn is not among what the tests need; once it is there, make test runs these, too.
test-sklearn: $(VENV)/.stamp
	$(VENV)/bin/python $(PIP_INSTALL) --editable '.[sklearn]'
	$(PYTEST) tests/package/test_scikit_learn.py $(ARGS)

# The suite is not on PyPI: SUITE is a clone of https://github.com/data-apis/array-api-tests. What it
# is known to reject is argued in tests/package/array_api_xfails.txt. About five minutes.
XFAILS := $(CURDIR)/tests/package/array_api_xfails.txt
EXAMPLES ?= 50
test-array-api:
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer found; make PYTHON=/path/to/python" >&2; exit 1; }
	@test -d "$(SUITE)/array-api/spec/2024.12" || { echo "the suite is missing; \
	git clone --recurse-submodules https://github.com/data-apis/array-api-tests /path/to/suite, then \
	make test-array-api SUITE=/path/to/suite" >&2; exit 1; }
	test -d $(STANDARD) || $(PYTHON) -m venv $(STANDARD)
	$(STANDARD)/bin/python $(PIP_INSTALL) --editable '.[test]' --requirement $(SUITE)/requirements.txt
	cd $(SUITE) && OPENBLAS_NUM_THREADS=1 ARRAY_API_TESTS_MODULE=gradtape \
	ARRAY_API_TESTS_VERSION=2024.12 $(CURDIR)/$(STANDARD)/bin/python -m pytest -q -n 2 \
	--max-examples=$(EXAMPLES) --disable-deadline --derandomize --xfails-file=$(XFAILS) \
	array_api_tests $(ARGS)

# SUITE is a clone of https://github.com/HIPS/autograd at v1.9.1. What fails is argued in
# tests/package/autograd_xfails.txt and in the script. The examples run for 15 s each, eight minutes.
test-autograd:
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer found; make PYTHON=/path/to/python" >&2; exit 1; }
	@test -f "$(SUITE)/tests/test_wrappers.py" || { echo "the suite is missing; \
	git clone --branch v1.9.1 https://github.com/HIPS/autograd /path/to/suite, then \
	make test-autograd SUITE=/path/to/suite" >&2; exit 1; }
	test -d $(AUTOGRADS) || $(PYTHON) -m venv $(AUTOGRADS)
	$(AUTOGRADS)/bin/python $(PIP_INSTALL) --editable '.[test]' xarray matplotlib
	cd $(SUITE) && OPENBLAS_NUM_THREADS=1 PYTHONPATH=$(CURDIR)/tests/support \
	$(CURDIR)/$(AUTOGRADS)/bin/python -m pytest -q -c /dev/null --rootdir . -p autograd_suite \
	--known-failures=$(CURDIR)/tests/package/autograd_xfails.txt tests $(ARGS)
	$(AUTOGRADS)/bin/python tests/support/autograd_examples.py $(SUITE)

# Packages as released, in an environment of their own; where tests are not installed with a package,
# they come from its source distribution. What fails is argued in tests/ecosystem/known_failures.txt,
# the table goes to docs/ecosystem.md. About twenty minutes; ARGS="--only pymanopt" runs one of them.
$(ECOSYSTEM)/.stamp: pyproject.toml tests/ecosystem/requirements.txt
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer found; make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(ECOSYSTEM)
	$(ECOSYSTEM)/bin/python $(PIP_INSTALL) --editable . --requirement tests/ecosystem/requirements.txt
	for name in $(WITH_TESTS); do $(ECOSYSTEM)/bin/python -m pip download --quiet \
	--disable-pip-version-check --no-deps --no-binary :all: --dest $(ECOSYSTEM)/sources \
	$$(grep "^$$name==" tests/ecosystem/requirements.txt) || exit 1; done
	@touch $@

WITH_TESTS := lifelines pymanopt reliability
TABLE = $(if $(ARGS),,--write docs/ecosystem.md)
test-ecosystem: $(ECOSYSTEM)/.stamp
	$(ECOSYSTEM)/bin/python tests/ecosystem/run.py --sources $(ECOSYSTEM)/sources $(TABLE) $(ARGS)

lint: $(VENV)/.stamp
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(VENV)/.stamp
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

# Takes about twenty minutes; two threads against two need an idle machine.
bench: $(PEERS)/.stamp
	$(PEERS)/bin/python -m benchmarks $(ARGS)

# The same programs with the sources of an earlier commit: make bench-before COMMIT=v0.9 ARGS="--quick".
# Takes about twenty minutes, too.
bench-before: $(PEERS)/.stamp
	$(PEERS)/bin/python -m benchmarks.before $(COMMIT) $(ARGS)

house: $(VENV)/.stamp
	$(VENV)/bin/python -m benchmarks.house $(ARGS)

clean:
	rm -rf gradtape-demo.html .venv .venv-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
