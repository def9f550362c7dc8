"""Running a query on all rows of a table, block by block, locally or on a Ray cluster, and writing the answers."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from made.cli import process
from made.cli.errors import usage
from made.cli.inputs import note_ignored, sources
from made.cli.on_error import REASONS
from made.cli.output import Output
from made.cli.printing import mode, note
from made.cli.questions import Answer, Question
from made.cli.signals import signal_of
from made.display import shortened
from made.errors import Interrupted, UnseenWarning

if TYPE_CHECKING:
    import pyarrow as pa

    from made.model.model import Model


@dataclass
class Tally:
    """A summary of the answers so far: number of rows, skipped rows with reasons, and unseen values."""

    rows: int = 0
    skipped: int = 0
    reasons: list[str] = field(default_factory=list)
    unseen: dict[str, int] = field(default_factory=dict)
    rounded: dict[str, int] = field(default_factory=dict)

    def add(self, answer: Answer) -> None:
        """Add an answer."""
        for row, reason in answer.reasons[: REASONS - len(self.reasons)]:
            self.reasons.append(shortened(f"row {self.rows + row}, {reason}", 500))
        for unseen, rounded in answer.unseen:
            self.unseen, self.rounded = Counter(self.unseen), Counter(self.rounded)
            self.unseen.update(unseen)
            self.rounded.update(rounded)
        self.rows, self.skipped = self.rows + answer.rows, self.skipped + answer.skipped

    def note(self) -> None:
        """Print how many rows were skipped, and why, unless JSON has it."""
        if self.skipped and not mode.json:
            rows = "1 row was" if self.skipped == 1 else f"{self.skipped} rows were"
            more = "; the first of them" if self.skipped > len(self.reasons) else ""
            note("\n  ".join([f"Note: {rows} skipped, with an empty answer{more}:", *self.reasons]))


class Asking:
    """A question to the model in a folder about the rows of DATA, and the :class:`Tally` of the answers so far.

    ``data`` is a file, a folder of files, a glob, ``-`` or a named dataset; None for questions without rows. ``ray`` is
    the address of a Ray cluster; None to answer here.
    """

    def __init__(self, question: Question, model: Model, folder: Path, data: str | None, ray: str | None) -> None:
        if ray is not None and data == "-":
            raise usage("'--ray' needs a file that every machine can read, not standard input.")
        self.question, self.model, self.folder, self.ray = question, model, folder, ray
        self.sources, self.tally = [""] if data is None else sources(data), Tally()
        if ray is not None:
            self.sources = [os.path.abspath(each) if os.path.exists(each) else each for each in self.sources]

    def facts(self) -> dict[str, Any]:
        """The skipped rows, for JSON; empty with --on-error raise."""
        skip = getattr(self.question, "skip", False)
        return {"skipped": self.tally.skipped, "reasons": self.tally.reasons} if skip else {}

    def answers(self, file: int = 0, number: int = 0) -> Iterator[Answer]:
        """The answers in the order of the blocks, starting at a block. Rows are numbered within the whole table."""
        from made.io.files import no_rows
        from made.queries.batches import counted_from

        with closing(self._here() if self.ray is None else self._on_ray(file, number)) as found:
            while True:
                with counted_from(self.tally.rows):
                    answer = next(found, None)
                if answer is None:
                    break
                if not self.tally.rows:
                    note_ignored(answer.ignored)
                for name in self.question.numbered:
                    answer.tables[name] = _counted_from(self.tally.rows, answer.tables[name])
                self.tally.add(answer)
                yield answer
        if not self.tally.rows:
            raise no_rows(self.sources)
        if self.tally.unseen:
            warnings.warn(UnseenWarning(self.tally.unseen, self.tally.rounded), stacklevel=2)

    def write(
        self,
        outputs: Mapping[str, Output],
        add_scores: Callable[[Any], None] = lambda table: None,
        facts: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        """Write the tables of all answers; on a Ray cluster, files are folders of parts.

        Arguments:
            outputs: the outputs of the tables, by name; the first is the main one.
            add_scores: called with the table "_scores" of each answer.
            facts: returns further members of the JSON; called at the end.
        """
        main = next(iter(outputs.values()))
        if self.ray is not None and main.out != "-":
            self._write_parts(outputs, add_scores, facts)
        else:
            with ExitStack() as files:
                for output in outputs.values():
                    files.enter_context(output)
                for answer in self.answers():
                    for name, output in outputs.items():
                        output.write(answer.tables[name])
                    add_scores(answer.tables.get("_scores"))
                main.facts = facts() | self.facts()
        self.tally.note()

    def _here(self) -> Generator[Answer]:
        ask = self.question.to(self.model)
        for file, source in enumerate(self.sources):
            for number, rows in enumerate(self.question.blocks(source)):
                yield ask(file, number, rows)

    def _on_ray(self, file: int, number: int) -> Generator[Answer]:
        from made.distributed.ray_data import answers_on_ray

        assert self.ray is not None
        process.end_at_once()
        return answers_on_ray(
            self.ray, self.question, self.folder, self.sources, (file, number), note, process.end_with
        )

    def _write_parts(
        self, outputs: Mapping[str, Output], add_scores: Callable[[Any], None], facts: Callable[[], dict[str, Any]]
    ) -> None:
        from made.cli.parts import Parts

        main = next(iter(outputs.values()))
        with Parts(outputs, self._identity()) as parts:
            self.tally = Tally(**parts.tally)
            for table in parts.scores():
                add_scores(table)
            if parts.parts and not parts.finished:
                count = f"{parts.parts} part{'s' * (parts.parts != 1)}"
                note(f"Note: {main.out} has {count} already; only the rest is computed.")
            try:
                if not parts.finished:
                    for answer in self.answers(*parts.place):
                        parts.write(answer, asdict(self.tally))
                        add_scores(answer.tables.get("_scores"))
                    parts.finish(asdict(self.tally))
            except KeyboardInterrupt as stopped:
                text = f"stopped; the parts in {main.out} are kept, and the same command continues."
                raise Interrupted(text, signal_of(stopped)) from None
            main.rows, main.facts = self.tally.rows, {"parts": parts.parts} | facts() | self.facts()
        if not main.silent:
            main.tell()

    def _identity(self) -> dict[str, Any]:
        """What must not change when the output is resumed."""
        from hashlib import sha256

        from made._version import __version__
        from made.io.files import Files
        from made.model.folder import manifest_text

        files = Files([each for each in self.sources if os.path.exists(each)])
        return {
            "version of made": __version__,
            "question": {"about": type(self.question).__name__, **asdict(self.question)},
            "model": sha256(manifest_text(self.folder) or b"").hexdigest(),
            "table": files.signature() or self.sources,
        }


def _counted_from(first: int, table: pa.Table) -> pa.Table:
    """A table whose column 'row' is increased by the number of rows before it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    place = table.column_names.index("row")
    return table.set_column(place, "row", pc.add(table.column(place), pa.scalar(first, table.column(place).type)))
