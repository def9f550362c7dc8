"""The record of results: `results/<name>.json`, a list of objects, kept whole while several commands write to it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from made.errors import DataError
from made.io.atomic import atomic
from made.io.lock import hold

__all__ = ["FIELDS", "Record", "source"]

WAIT = 60.0  # seconds, for another command that writes to the same file
# What every object has, null where it does not apply.
FIELDS = ("dataset", "row", "valid_nll", "test_nll", "ci95", "masks", "config", "seed", "epochs", "seconds", "commit")


class Record:
    """The results of one table or figure, a row of a set being there once.

    Arguments:
        path: the file, which need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self) -> list[dict[str, Any]]:
        """All objects."""
        if not self.path.exists():
            return []
        try:
            rows = json.loads(self.path.read_text())
        except (OSError, ValueError) as error:
            raise DataError(f"{self.path} cannot be read: {error}.") from None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise DataError(f"{self.path} should be a list of results. Put the right file there, or remove it.")
        if wrong := [field for row in rows for field in FIELDS if field not in row]:
            raise DataError(f"{self.path}: a result has no {wrong[0]!r}. Put the right file there, or remove it.")
        return rows

    def get(self, dataset: str | None, row: str | None) -> dict[str, Any] | None:
        """The object of a row of a set."""
        found = [each for each in self.rows() if (each.get("dataset"), each.get("row")) == (dataset, row)]
        return found[0] if found else None

    def put(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Write an object, in place of the one that there may be for the same row of the same set; as it is written.

        One whose test NLL is not known yet does not replace one that has it.
        """
        result = dict.fromkeys(FIELDS) | {"commit": source()} | dict(result)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._alone():
            key = (result["dataset"], result["row"])
            before = self.get(*key)
            if before is not None and before["test_nll"] is not None and result["test_nll"] is None:
                return result
            rows = [each for each in self.rows() if (each.get("dataset"), each.get("row")) != key] + [result]
            self._write(rows)
        return result

    def remove(self, budget: str) -> None:
        """Forget the objects of a budget, which are to be made anew."""
        with self._alone():
            rows = [each for each in self.rows() if each.get("budget") != budget]
            self._write(rows)

    def _write(self, rows: list[dict[str, Any]]) -> None:
        rows.sort(key=lambda each: str(each.get("dataset")))
        with atomic(self.path) as file:
            file.write((json.dumps(rows, indent=1, allow_nan=False) + "\n").encode())

    def _alone(self) -> AbstractContextManager[None]:
        """Hold the file against other commands for a moment."""
        return hold(self.path.parent, wait=WAIT, name=f".{self.path.name}.lock")


def source() -> str:
    """The commit of the code that runs, with a plus if it was changed since; unknown outside of a clone."""
    folder = Path(__file__).parent

    def git(*words: str) -> str:
        run = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
        return run.stdout.strip() if run.returncode == 0 else ""

    try:
        commit = git("rev-parse", "--short=10", "HEAD")
        changed = git("status", "--porcelain", "--", str(folder.parent)) if commit else ""
    except OSError:
        return "unknown"
    return f"{commit}{'+' if changed else ''}" if commit else "unknown"
