"""Tables written in parts, so that an interrupted command can be resumed after the last complete part.

An output is then a folder of files, part-000000.parquet and so on, in the order of the rows, which can be read as one
table. `_made.json` in the folder of the first output records the progress. It is replaced when a part of every output
is complete, so that an incomplete part is never used.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from made.cli.output import Output
from made.cli.questions import Answer
from made.errors import QuestionError
from made.io import SUFFIXES

if TYPE_CHECKING:
    import pyarrow as pa

STATE = "_made.json"
SCORES = "_scores"
BLOCKS = 10  # of rows in a part
WAIT = 1.0  # seconds for another process that writes to the same folder


class Parts:
    """Folders of parts, and the progress of their answers.

    Arguments:
        outputs: the folders, as outputs not yet opened; their suffix is the format, Parquet by default.
        identity: what must not change when the output is resumed.

    Attributes:
        parts: number of complete parts.
        place: the file and the number of the first block that is not in them.
        tally: the summary after the last complete part.
        finished: whether all parts are complete.
    """

    def __init__(self, outputs: Mapping[str, Output], identity: dict[str, Any]) -> None:
        self.outputs, self.identity = outputs, identity
        self.folders = {name: Path(output.out) for name, output in outputs.items()}
        self.main = next(iter(self.folders.values()))
        self.parts, self.place, self.finished = 0, (0, 0), False
        self.tally: dict[str, Any] = {}
        self._lock, self._open = ExitStack(), ExitStack()
        self._writers: dict[str, Output] = {}
        self._schemas: dict[str, pa.Schema | None] = {}
        self._blocks = 0

    def __enter__(self) -> Parts:
        from made.io.lock import hold

        if len({folder.absolute() for folder in self.folders.values()}) < len(self.folders):
            raise QuestionError("two outputs have the same name: choose another one.")
        for folder in self.folders.values():
            if folder.exists() and not folder.is_dir():
                raise FileExistsError(f"{folder} is a file; on a cluster, the output is a folder of parts.")
        with ExitStack() as stack:
            for folder in self.folders.values():
                stack.enter_context(hold(folder, wait=WAIT))
            self._resume()
            self._lock = stack.pop_all()
        return self

    def scores(self) -> Iterator[pa.Table]:
        """The scores that were kept with the complete parts."""
        from pyarrow import parquet

        for part in range(self.parts):
            if (path := self.main / f"{SCORES}-{part:06d}.parquet").exists():
                yield parquet.read_table(path)

    def write(self, answer: Answer, tally: dict[str, Any]) -> None:
        """Write the next answer; ``tally`` summarizes all answers so far."""
        if not self._writers:
            for name in [*self.folders, *([SCORES] if SCORES in answer.tables else [])]:
                self._writers[name] = self._open.enter_context(self._part(name, self.parts))
        for name, writer in self._writers.items():
            writer.write(answer.tables[name])
        self._blocks, self.place = self._blocks + 1, (answer.file, answer.number + 1)
        if self._blocks == BLOCKS:
            self._complete(tally)

    def finish(self, tally: dict[str, Any]) -> None:
        """Write the last part."""
        if self._blocks:
            self._complete(tally)
        self.finished = True
        self._save(tally)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)  # a part that is not complete does not appear
        self._lock.__exit__(kind, error, trace)

    def _part(self, name: str, number: int) -> Output:
        if name == SCORES:
            return Output(str(self.main / f"{SCORES}-{number:06d}.parquet"), silent=True)
        folder, own = self.folders[name], self.outputs[name]
        suffix = folder.suffix.lower() if folder.suffix.lower() in SUFFIXES else ".parquet"
        path = folder / f"part-{number:06d}{suffix}"
        return Output(str(path), own.names, own.safe_csv, silent=True, schema=self._schemas.get(name))

    def _complete(self, tally: dict[str, Any]) -> None:
        self._open.close()
        self._schemas |= {name: writer.schema for name, writer in self._writers.items()}
        self._writers, self._blocks, self.parts = {}, 0, self.parts + 1
        self._save(tally)

    def _save(self, tally: dict[str, Any]) -> None:
        from made.io.atomic import atomic

        self.tally = tally
        state = {"parts": self.parts, "place": self.place, "finished": self.finished, "tally": tally}
        with atomic(self.main / STATE) as stream:
            stream.write(json.dumps({"identity": self.identity} | state, indent=1).encode())

    def _resume(self) -> None:
        """Find the complete parts, and refuse folders with other content."""
        from pyarrow import parquet

        from made.io.atomic import PART

        for folder in self.folders.values():
            for left in [each for each in folder.iterdir() if PART.fullmatch(each.name)]:
                shutil.rmtree(left, ignore_errors=True)  # of a process that was killed
        try:
            state = json.loads((self.main / STATE).read_bytes())
            same = json.loads(json.dumps(self.identity))
            other = [name for name, fact in state["identity"].items() if fact != same.get(name)]
            parts, place = int(state["parts"]), (int(state["place"][0]), int(state["place"][1]))
            finished, tally = bool(state["finished"]), dict(state["tally"])
        except FileNotFoundError:
            for folder in self.folders.values():
                if any(not each.name.startswith(".") for each in folder.iterdir()):
                    raise FileExistsError(
                        f"{folder} exists, and has no parts of this command: choose another folder."
                    ) from None
            return
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            raise QuestionError(f"{self.main / STATE} is damaged: choose another folder.") from None
        if other:
            raise QuestionError(
                f"{self.main} has the answers of another {other[0]}: choose another folder, or remove it."
            )
        self.parts, self.place, self.finished, self.tally = parts, place, finished, tally
        for name in self.folders if parts else ():
            path = Path(self._part(name, 0).out)
            if path.suffix == ".parquet":
                self._schemas[name] = parquet.read_schema(path)
