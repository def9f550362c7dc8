"""The query that a command runs on each block of rows, locally or on a Ray cluster, and its answer."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from made.cli.inputs import known_columns, load, rows_of
from made.cli.on_error import RowFilter
from made.errors import UnseenWarning
from made.hints import for_command_line

if TYPE_CHECKING:
    import torch

    from made.model.model import Model


@dataclass
class Answer:
    """The answer to a block of rows, numbered from the first row of the block.

    Attributes:
        tables: the tables to write, by output.
        rows: number of rows.
        skipped: number of rows without an answer, with the reasons for the first few.
        unseen: values that did not occur in training; see :class:`made.errors.UnseenWarning`.
        ignored: columns that are not in the model.
        file, number: the number of the file, and of the block within it.
    """

    tables: dict[str, Any]
    rows: int
    skipped: int = 0
    reasons: list[tuple[int, str]] = field(default_factory=list)
    unseen: list[tuple[dict[str, int], dict[str, int]]] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    file: int = 0
    number: int = 0


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """A query on blocks of rows. It holds options but no model, because it may be sent to other machines.

    Arguments:
        masks: number of masks to average; see :func:`made.cli.inputs.load`.
        seed: the random seed. Default: the model's.
    """

    masks: int | None = None
    seed: int | None = None

    def open(self, folder: Path) -> Callable[[int, int, Any], Answer]:
        """Bind the question to the model in a folder."""
        return self.to(load(folder, self.masks, quiet=True))

    def to(self, model: Model) -> Callable[[int, int, Any], Answer]:
        """Bind the question to a model: a function of the file and block numbers and the rows."""
        from made.queries.random import of_block

        generator = model.generator(self.seed)

        def ask(file: int, number: int, rows: Any) -> Answer:
            with warnings.catch_warnings(), for_command_line():
                unseen = UnseenWarning.collected()
                answer = self.answer(model, rows, of_block(generator, number, file))
            answer.file, answer.number = file, number
            answer.unseen = [(each.counts, each.rounded) for each in unseen]
            return answer

        return ask

    def blocks(self, source: str) -> Iterator[Any]:
        """The rows of a file in blocks, as :meth:`answer` takes them."""
        return rows_of(source)

    @abstractmethod
    def answer(self, model: Model, rows: Any, random: torch.Generator) -> Answer:
        """The answer to a block of rows."""

    @property
    def numbered(self) -> Collection[str]:
        """The tables whose column 'row' is offset by the number of rows before the block."""
        return ()


@dataclass(frozen=True, kw_only=True)
class RowQuestion(Question):
    """A question about given rows.

    Arguments:
        skip: leave out rows that cannot be answered.
    """

    skip: bool = False

    def answer(self, model: Model, rows: Any, random: torch.Generator) -> Answer:
        optional = self.optional(model)
        known, ignored = known_columns(rows, model, optional)
        row_filter = RowFilter(model, self.skip, optional)
        tables = self.tables(row_filter, known, random)
        return Answer(tables, len(rows), row_filter.skipped, row_filter.reasons, ignored=ignored)

    def optional(self, model: Model) -> int | None:
        """The number of a column that may be absent, and whose values are ignored."""
        return None

    @abstractmethod
    def tables(self, row_filter: RowFilter, rows: Any, random: torch.Generator) -> dict[str, Any]:
        """The tables to write about rows that have the columns of the model."""
