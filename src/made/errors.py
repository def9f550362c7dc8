"""The errors that `made` raises, grouped by what the caller must fix. Every message is a sentence."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Self

__all__ = [
    "ClusterError",
    "DataError",
    "Diverged",
    "Interrupted",
    "MadeError",
    "ModelError",
    "ParameterError",
    "QuestionError",
]
__all__ += ["UninformativeError", "UnseenWarning", "WorkerLost", "is_out_of_memory"]


class MadeError(ValueError):
    """Base class of errors that may know where the problem lies.

    Arguments:
        message: a sentence; the row number, if known, is put in front of it.
        row: row number, counted from 0.
        column: name of the column.
        argument: name of the argument that was wrong.

    Example:
        >>> str(DataError("column 2 ('age'): infinity cannot be used.", row=3, column="age"))
        "row 3, column 2 ('age'): infinity cannot be used."
    """

    def __init__(
        self, message: str, *, row: int | None = None, column: str | None = None, argument: str | None = None
    ) -> None:
        super().__init__(message)
        self.message, self.row, self.column, self.argument = message, row, column, argument

    def __str__(self) -> str:
        return self.message if self.row is None else f"row {self.row}, {self.message}"

    def after(self, rows: int) -> Self:
        """The same error, with ``rows`` rows in front of the table in which it happened."""
        row = None if self.row is None else self.row + rows
        return type(self)(self.message, row=row, column=self.column, argument=self.argument)


class DataError(MadeError):
    """Data that cannot be used: a value outside the support of its column, a corrupt file."""


class UninformativeError(DataError):
    """A column that says nothing about other columns or rows: without a value, or with a different one in each row.

    Attributes:
        kinds: every such column of the table, and the kind to set to use it anyway; ``None`` if it has no value.
    """

    kinds: Mapping[str, str | None] = MappingProxyType({})


class ModelError(MadeError):
    """A model folder that cannot be used: damaged, foreign, or written by a newer version."""


class QuestionError(MadeError):
    """A query that is malformed, or that this model cannot answer.

    Attributes:
        place: where in the text of a question the problem lies, the first character and the one after the last.
    """

    place: tuple[int, int] | None = None


class ClusterError(MadeError):
    """A cluster that cannot be reached or used."""


class ParameterError(MadeError):
    """A parameter of the estimator or of training with a value that cannot be used; ``argument`` is its name."""


class UnseenWarning(UserWarning):
    """Some values did not occur in training.

    Arguments:
        counts: the number of such values, by column.
        rounded: how many of them lie between the steps of a column of numbers, and are taken for the nearest step.

    Example:
        >>> print(UnseenWarning({"price": 3}, rounded={"price": 3}))
        values between the steps of the training rows: 3 of 'price'. Each is taken for the nearest step.
    """

    def __init__(self, counts: Mapping[str, int], rounded: Mapping[str, int] | None = None) -> None:
        self.counts, self.rounded = dict(counts), dict(rounded or {})
        unlikely = {name: count - self.rounded.get(name, 0) for name, count in counts.items()}
        parts = []
        if shown := _counted(unlikely):
            parts.append(f"values that training never saw: {shown}. They are very unlikely.")
        if shown := _counted(self.rounded):
            parts.append(f"values between the steps of the training rows: {shown}. Each is taken for the nearest step.")
        super().__init__(" Also, ".join(parts))

    @classmethod
    @contextmanager
    def ignored(cls) -> Iterator[None]:
        """Without such warnings: what is shown says in its own way which values are unseen."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cls)
            yield

    @classmethod
    def collected(cls) -> list[UnseenWarning]:
        """Such warnings, collected from now on instead of shown, within :func:`warnings.catch_warnings`."""
        found: list[UnseenWarning] = []
        show = warnings.showwarning

        def collect(message: Warning | str, *args: Any, **kwargs: Any) -> None:
            if isinstance(message, UnseenWarning):
                found.append(message)
            else:
                show(message, *args, **kwargs)

        warnings.simplefilter("always", cls)
        warnings.showwarning = collect
        return found

    @classmethod
    def together(cls, several: Iterable[UnseenWarning]) -> UnseenWarning | None:
        """One warning for several; None for none."""
        counts, rounded = Counter[str](), Counter[str]()
        for each in several:
            counts.update(each.counts)
            rounded.update(each.rounded)
        return cls(counts, rounded) if counts else None


def _counted(counts: Mapping[str, int]) -> str:
    shown = [f"{count} of {name!r}" for name, count in counts.items() if count]
    return ", ".join(shown[:5]) + (f" and {len(shown) - 5} more columns" if len(shown) > 5 else "")


class Diverged(ArithmeticError):  # noqa: N818
    """A loss or a gradient in training was not finite."""


class Interrupted(KeyboardInterrupt):
    """A signal stopped the work; a run of training in a folder has saved its state.

    Arguments:
        message: a sentence.
        signal: number of the signal. Default: SIGINT (Ctrl-C).
        remedy: a second sentence, which says how to resume in Python.
    """

    def __init__(self, message: str, signal: int = 2, *, remedy: str = "") -> None:
        super().__init__(f"{message} {remedy}".strip())
        self.message, self.signal = message, signal


class WorkerLost(ConnectionError):  # noqa: N818
    """Another process that trains together with this one has ended, or cannot be reached.

    Attributes:
        reason: what the library that connects them says.
    """

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory could not be allocated; by the text of torch's errors, which have no class of their own."""
    text = str(error) if isinstance(error, RuntimeError) else ""
    return isinstance(error, MemoryError) or "allocate" in text or "memory" in text
