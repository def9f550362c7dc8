"""Results as the tables write them, and the commands of `made paper`, for tests."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from made.cli import app

ROOT = Path(__file__).parents[1]


TINY = {"hidden_sizes": (5,), "masks": 1, "optimizer": "adagrad", "max_epochs": 1, "batch_size": 50}


def run(*arguments, code: int = 0):
    result = CliRunner().invoke(app, ["paper", *(str(each) for each in arguments)])
    if isinstance(result.exception, Exception) and code != 1:
        raise result.exception
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def result_of(dataset: str, row: str, nll: float, **more) -> dict[str, object]:
    """A result as the tables write it."""
    config = {"name": f"{row}, small", "hidden_sizes": [500], "max_epochs": 60, "batch_size": 100}
    facts = {"dataset": dataset, "row": row, "valid_nll": nll + 1, "test_nll": nll, "ci95": 0.25, "masks": 1}
    facts |= {"config": config, "seed": 0, "epochs": 10, "seconds": 20.0, "commit": "abc", "budget": "evening"}
    return facts | {"command": "made paper table uci", "tried": []} | more


def write(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(rows))


def line(page: str, *starts: str) -> list[str]:
    """The cells of the line of a table that starts with these."""
    (found,) = [row for row in page.splitlines() if row.startswith(f"| {' | '.join(starts)} |")]
    return [cell.strip() for cell in found.strip("|").split("|")]


WORLDS = np.array(list(itertools.product([0, 1], repeat=6)))
