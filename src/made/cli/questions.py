"""What a command asks about each block of rows, here or on a Ray cluster, and what it is answered."""

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
    """The answer to a block of rows, which are counted from the first of the block.

    Attributes:
        tables: what is to be written, by output.
        rows: how many there are.
        skipped: how many of them could not be answered, with the reasons of the first.
        unseen: values that training never saw; see :class:`made.errors.UnseenWarning`.
        ignored: columns that the model does not know.
        file, number: the place of the block: the number of its file, and its own in that file.
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
    """A question about blocks of rows. It holds options and no model, as it is sent to other machines.

    Arguments:
        masks: how many to average; see :func:`made.cli.inputs.load`.
        seed: the random seed. Default: that of the model.
    """

    masks: int | None = None
    seed: int | None = None

    def open(self, folder: Path) -> Callable[[int, int, Any], Answer]:
        """The question to the model in a folder."""
        return self.to(load(folder, self.masks, told=True))

    def to(self, model: Model) -> Callable[[int, int, Any], Answer]:
        """The question to a model: a function of the place of a block and its rows."""
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
        """The answer to a block of rows, whatever its place."""

    @property
    def numbered(self) -> Collection[str]:
        """The tables with a column 'row', to which the number of rows before the block is added."""
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
        """The number of a column that rows may lack, and whose values do not matter."""
        return None

    @abstractmethod
    def tables(self, row_filter: RowFilter, rows: Any, random: torch.Generator) -> dict[str, Any]:
        """What is to be written about rows with the columns of the model."""
