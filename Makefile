# Two commands do everything on a machine that has Python 3.11 and make: `make demo` and `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

FIRST := $(foreach layer,ask baselines cli compare io pages paper report serve training,tests/$(layer)/)
REST := $(filter-out $(FIRST),$(wildcard tests/*/) $(wildcard tests/test_*.py)) src

.PHONY: demo test test-cluster test-mlflow test-oldest first rest lint coverage fuzz bench docs dist-check clean

demo: .venv/installed
	$(BIN)/made demo

# On two cores, in two halves.
test: lint
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target first rest

first:
	$(BIN)/python -m pytest $(FIRST)

rest:
	$(BIN)/python -m pytest $(REST)

# Two hosts, as network namespaces, under torchrun and Ray; skipped where namespaces cannot be made, which takes root.
test-cluster: .venv/ray
	MADE_CLUSTER=1 $(BIN)/python -m pytest tests/distributed/test_cluster.py

.venv/ray: .venv/installed
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[ray]' \
		|| { echo "make test-cluster: the extra 'ray' could not be installed; see the message of pip above." >&2; exit 1; }
	touch $@

# The recipe of docs/mlflow.md, in an environment of its own: MLflow asks for older versions than constraints.txt has.
test-mlflow:
	$(PYTHON) -m venv .mlflow
	grep '^torch==' constraints.txt > .mlflow/constraints.txt
	.mlflow/bin/python -m pip install --quiet --disable-pip-version-check --constraint .mlflow/constraints.txt . mlflow==3.17.2 hypothesis pandas pytest
	.mlflow/bin/python -m pytest tests/export/test_mlflow.py

# All tests with the oldest versions that pyproject.toml allows. No part of CI. Tests that need a browser, schemathesis or Ray are
# skipped, and what a query imports, since typer 0.16 imports rich. What is ignored are warnings about a file handle of numpy 1.26,
# and of pandas 2.2 where a test compares None with NaN.
test-oldest:
	$(PYTHON) -m venv .oldest
	.oldest/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-oldest.txt \
		--editable '.[mcp,onnx,plot,pandas,serve,sql,tensorboard,tune]' httpx hypothesis onnxruntime polars pytest
	.oldest/bin/python -m pytest -W 'ignore::pytest.PytestUnraisableExceptionWarning' -W 'ignore:Mismatched null-like:FutureWarning' \
		--deselect tests/cli/test_cli.py::test_a_query_imports_nothing_that_it_does_not_need

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Branch coverage of src, the commands that tests start included.
coverage: .venv/installed
	rm -f .coverage .coverage.*
	$(BIN)/python -m coverage run -m pytest
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report --fail-under=92 --skip-covered --sort=cover

# New examples each time; MADE_FUZZ_SECONDS is for each target.
fuzz: .venv/installed
	$(BIN)/python tests/fuzz.py

bench: .venv/installed
	$(BIN)/python -m benchmarks.updates --json > results/updates.json
	$(BIN)/python -m benchmarks.answers --json > results/answers.json
	$(BIN)/python -m benchmarks.startup --json > results/startup.json
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.speed_page

# The site, into build/docs: every block of its tutorials is executed. Warnings are errors.
docs: .venv/docs
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --jobs 2 --quiet docs build/docs

.venv/docs: .venv/installed
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

# The sdist and the wheel from it, installed without extras into an empty environment, outside of this folder.
dist-check: .venv/installed
	rm -rf .dist
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m build --outdir .dist .
	! tar --list --file .dist/made-*.tar.gz | grep --extended-regexp '^made-[^/]*/(build|runs|docs/_figures|[.](venv|mlflow|oldest))/'
	$(PYTHON) -m venv .dist/venv
	.dist/venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt .dist/made-*.whl
	mkdir .dist/empty
	cd .dist/empty && ../venv/bin/made demo && test -s demo/report.html && test -s demo/filled.csv
	cd .dist/empty && ../venv/bin/made report demo/model penguins --out again.html --json > again.json && test -s again.html
	cd .dist/empty && ../venv/bin/made export demo/model --onnx model.onnx 2>&1 | grep --quiet "pip install 'made\[onnx\]'"
	cd .dist/empty && ../venv/bin/made serve demo/model 2>&1 | grep --quiet "pip install 'made\[serve\]'"
	! .dist/venv/bin/python -m pip list --format=freeze | grep --ignore-case --extended-regexp '^(nvidia|cuda|triton|pandas|matplotlib|onnx)'

# PIP_CONSTRAINT holds the build's own requirements, too, to the versions in the file.
.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[mcp,onnx,plot,pandas,serve,sql,tensorboard,tune,bench,dev]'
	touch $@

clean:
	rm -rf .venv .dist .mlflow .oldest .mypy_cache .pytest_cache .ruff_cache .hypothesis
