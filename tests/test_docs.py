"""The site: its pages can be reached, its code names what exists, its notebooks run. `make docs` runs all its code."""

from __future__ import annotations

import ast
import importlib
import json
import re
import sys
from pathlib import Path

import pytest

import made

DOCS = Path(__file__).parent.parent / "docs"
NOTEBOOKS = sorted(DOCS.glob("notebooks/*.ipynb"))
RUN = [
    DOCS / "start.md",
    DOCS / "concepts.md",
    DOCS / "engine.md",
    DOCS / "scikit-learn.md",
    DOCS / "onnx.md",
    DOCS / "which-tool.md",
    *sorted(DOCS.glob("tutorials/*.md")),
    *NOTEBOOKS,
]


def cells(path: Path) -> list[str]:
    """The Python of a page or a notebook, block by block."""
    if path.suffix == ".ipynb":
        return [
            "".join(cell["source"]) for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"
        ]
    return re.findall(r"^```python\n(.*?)^```", path.read_text(), flags=re.S | re.M)


def test_every_page_is_in_one_table_of_contents() -> None:
    listed = []
    for page in DOCS.rglob("*.md"):
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), flags=re.S | re.M):
            listed += [line for line in block.splitlines() if line and not line.startswith(":")]
    pages = [path for pattern in ("*.md", "*.ipynb") for path in DOCS.rglob(pattern)]
    names = [str(path.relative_to(DOCS).with_suffix("")) for path in pages]
    assert sorted([*listed, "index"]) == sorted(names)


def test_every_picture_is_there() -> None:
    pages = [DOCS.parent / "README.md", *DOCS.rglob("*.md")]
    shown = [(page, name) for page in pages for name in re.findall(r"!\[[^]]*\]\(([^):]+)\)", page.read_text())]
    assert shown
    assert [name for page, name in shown if not (page.parent / name).exists()] == []


def test_every_public_name_is_in_the_reference() -> None:
    pages = "".join(path.read_text() for path in (DOCS / "reference").glob("*.md"))
    documented = set(re.findall(r"^\.\. auto(?:class|function):: made\.(\w+)$", pages, flags=re.M))
    errors = set(importlib.import_module("made.errors").__all__)
    assert "automodule:: made.errors" in pages
    assert documented | (errors & set(made.__all__)) == set(made.__all__)


def bound(tree: ast.Module) -> dict[str, type]:
    """The names to which a page binds an estimator of the package, as in ``model = MADE(...).fit(...)``."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value
            while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "fit":
                value = value.func.value
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id.startswith("MADE"):
                found[node.targets[0].id] = getattr(made, value.func.id)
    return found


@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
def test_code_names_what_exists(path) -> None:
    tree = ast.parse("\n".join(cells(path)))
    assert tree.body
    estimators = bound(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "made":
            module = importlib.import_module(node.module or "")
            assert not [each.name for each in node.names if not hasattr(module, each.name)]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in estimators:
            assert hasattr(estimators[node.value.id], node.attr) or node.attr.endswith("_"), node.attr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    monkeypatch.syspath_prepend(DOCS / "_ext")
    session = importlib.import_module("execution").Session(tmp_path)
    shown = []
    for code in cells(path):
        output = session.python(code)
        if output.error is not None:
            raise output.error
        shown += output.parts
    assert shown
    sys.modules.pop("execution")


def test_a_figure_that_is_not_of_pyplot_is_shown_where_it_is_the_last_line(tmp_path, monkeypatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(DOCS / "_ext")
    execution = importlib.import_module("execution")
    code = "from made.paper.figure_network import EXAMPLE, make_figure\nprint('before')\nmake_figure(EXAMPLE)"
    shown = execution.Session(tmp_path).python(code)
    assert shown.error is None
    assert shown.parts[0] == "before"
    assert shown.parts[1].titles == "Autoencoder; Masks; MADE"
    assert "#333333" in shown.parts[1].light
    assert "#333333" not in shown.parts[1].dark
    sys.modules.pop("execution")


def test_a_page_imports_what_it_uses() -> None:
    unused = []
    for path in RUN:
        tree = ast.parse("\n".join(cells(path)))
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                imported = [(each.asname or each.name).partition(".")[0] for each in node.names]
                unused += [
                    (path.name, name) for name in imported if name not in names and not name.startswith("enable_")
                ]
    assert unused == []


def test_a_block_that_fails_is_reported(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(DOCS / "_ext")
    session = importlib.import_module("execution").Session(tmp_path)
    failed = session.python("print('before')\n1 / 0")
    assert failed.parts == ["before"]
    assert isinstance(failed.error, ZeroDivisionError)
    assert session.console("$ exit 3").error is not None
    sys.modules.pop("execution")
