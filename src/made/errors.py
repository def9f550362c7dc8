"""The errors that `made` raises, grouped by what the caller must fix. Every message is a sentence for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

__all__ = ["DataError", "Diverged", "Interrupted", "MadeError", "ModelError", "QuestionError", "UnseenWarning"]


class MadeError(ValueError):
    """An error that may know where in a table it happened.

    Arguments:
        message: a sentence; where a row is known, it is put in front.
        row: the row, counted from 0.
        column: the column's name.

    Example:
        >>> str(DataError("column 2 ('age'): infinity cannot be used.", row=3, column="age"))
        "row 3, column 2 ('age'): infinity cannot be used."
    """

    def __init__(self, message: str, *, row: int | None = None, column: str | None = None) -> None:
        super().__init__(message)
        self.message, self.row, self.column = message, row, column

    def __str__(self) -> str:
        return self.message if self.row is None else f"row {self.row}, {self.message}"

    def after(self, rows: int) -> Self:
        """The same error in a table in which so many rows come before."""
        return type(self)(self.message, row=None if self.row is None else self.row + rows, column=self.column)


class DataError(MadeError):
    """Data that cannot be used: a value that is not allowed, a file that is not what it says."""


class ModelError(MadeError):
    """A model folder that cannot be used: damaged, foreign, or of a newer version."""


class QuestionError(MadeError):
    """A question that cannot be asked of this model, or is malformed."""


class UnseenWarning(UserWarning):
    """Some values were never seen in training.

    Arguments:
        counts: how many, by column.
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        shown = [f"{count} of {name!r}" for name, count in list(counts.items())[:5]]
        more = f" and {len(counts) - 5} more columns" if len(counts) > 5 else ""
        super().__init__(f"values that training never saw: {', '.join(shown)}{more}. They are very unlikely.")
        self.counts = dict(counts)


class Diverged(ArithmeticError):  # noqa: N818
    """Training met a loss or a gradient that is not finite."""


class Interrupted(KeyboardInterrupt):
    """A signal asked to stop; of training, the state is saved.

    Arguments:
        message: a sentence.
        signal: the signal's number; default: SIGINT, which is Ctrl-C.
    """

    def __init__(self, message: str, signal: int = 2) -> None:
        super().__init__(message)
        self.signal = signal
