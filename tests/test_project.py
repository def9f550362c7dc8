"""What a newcomer gets: an environment of pinned versions without CUDA, and a README that runs."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from made import MADE

ROOT = Path(__file__).parent.parent


def test_no_cuda_package_is_installed() -> None:
    names = {(distribution.metadata["Name"] or "").lower() for distribution in importlib.metadata.distributions()}
    assert "torch" in names
    assert not [name for name in names if name.startswith(("nvidia-", "cuda-", "triton"))]


def test_torch_is_held_below_2_14() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "torch>=2.10,<2.14" in project["dependencies"]


def test_every_version_is_exact() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert "torch==2.13.0" in lines
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][^,*]*", line) for line in lines)
    pinned = {re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower(): line.partition("==")[2] for line in lines}
    # What the environment of the Makefile has is what the file says.
    if not (ROOT / ".venv" / "installed").exists() or Path(sys.prefix) != ROOT / ".venv":
        pytest.skip("not in the environment of the Makefile")
    for distribution in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()
        if name not in ("made", "pip", "setuptools"):
            assert distribution.version.partition("+")[0] == pinned.get(name), name


@pytest.mark.parametrize("page", ["README.md", "docs/engine.md", "docs/scikit-learn.md"])
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch) -> None:
    """Every Python block as it is printed, but for the length of training."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(MADE.__init__.__kwdefaults__, "max_epochs", 2)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.S)
    assert blocks
    for block in blocks:
        exec(compile(re.sub(r"max_epochs=\d+", "max_epochs=2", block), page, "exec"), {})


def test_importing_the_package_does_not_import_torch() -> None:
    """Or the command's help would have to wait for it."""
    code = "import made, made.cli, sys; assert 'torch' not in sys.modules; made.Network; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_names_are_refused() -> None:
    import made

    assert "Network" in dir(made)
    with pytest.raises(AttributeError, match="module 'made' has no attribute 'nothing'"):
        made.nothing  # noqa: B018


def test_nothing_unsafe_is_loaded() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        assert not re.search(
            r"\b(pickle|torch\.load|joblib|eval\(|allow_pickle)", path.read_text().replace(".eval(", "")
        )


def test_the_guide_lists_every_file() -> None:
    listed = set(re.findall(r"\]\(\.\./src/made/([\w/]+\.py)\)", (ROOT / "docs" / "guide.md").read_text()))
    files = {str(path.relative_to(ROOT / "src" / "made")) for path in (ROOT / "src" / "made").rglob("*.py")}
    assert {name for name in files if not name.endswith("/__init__.py")} <= listed <= files


def test_no_file_is_longer_than_400_lines() -> None:
    sizes = {path.name: path.read_text().count("\n") for path in (ROOT / "src").rglob("*.py")}
    assert not {name: size for name, size in sizes.items() if size > 400}


def test_at_most_ten_files_lie_at_the_top() -> None:
    assert len([path for path in (ROOT / "src" / "made").iterdir() if path.is_file()]) <= 10
