"""Workers that train together: each takes its share of the rows of every update, and gradients are added up.

All of them hold the same rows and draw the same random numbers, so that the share of a worker is a matter of positions
alone: the sum over the workers is the loss, and the gradient, of one process with the same batch. What only one of them
should do, such as writing a checkpoint, the first one does.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, distributed
from torch.distributed import ProcessGroup

from made.display import shortened
from made.errors import DataError, QuestionError, WorkerLost


class Share(NamedTuple):
    """The rows of a batch that one worker takes.

    Attributes:
        rows: where they are in the batch.
        of: the number of rows in the batch.
        counts: whether they count. A worker for whom no row is left takes the first one, and multiplies its loss by 0:
            it then has gradients of the same parameters as the others.
    """

    rows: slice
    of: int
    counts: bool = True

    @property
    def whole(self) -> bool:
        """Whether it is the whole batch."""
        return self.counts and self.rows.stop - self.rows.start == self.of

    def part(self, total: Tensor) -> Tensor:
        """The contribution of a sum over these rows to the sum over the batch."""
        return total if self.counts else total * 0


class Workers:
    """One worker, alone: the base class of :class:`JoinedWorkers`.

    Attributes:
        rank: the number of this worker; the first, 0, writes the model.
        count: the number of workers.

    Example:
        >>> ALONE.share(100)
        Share(rows=slice(0, 100, None), of=100, counts=True)
    """

    rank = 0
    count = 1
    agreed_error = False  # whether all workers know of the error that ends them, so that one of them can report it

    def share(self, rows: int) -> Share:
        """The share of this worker in ``rows`` rows, by position; shares differ by at most one row."""
        begin, end = (each * rows // self.count for each in (self.rank, self.rank + 1))
        return Share(slice(begin, end), rows) if begin < end else Share(slice(0, min(1, rows)), rows, counts=False)

    def places(self, rows: int, size: int) -> Tensor | None:
        """The positions of this worker's shares in ``rows`` rows, cut into batches; ``None`` if it is alone."""
        if self.count == 1:
            return None
        batches = [(begin, self.share(min(size, rows - begin)).rows) for begin in range(0, rows, size)]
        return torch.cat([torch.arange(begin + own.start, begin + own.stop) for begin, own in batches])

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors of one dtype by their sums over the workers."""

    def total(self, number: float) -> float:
        """The sum of a number over the workers."""
        return number

    def of_first(self, number: float) -> float:
        """The number that the first worker has."""
        return self.total(0.0 if self.rank else number)

    def copy_first(self, tensor: Tensor) -> None:
        """Replace a tensor by the first worker's."""

    def exchange(self, facts: Any) -> list[Any]:
        """The facts of all workers, as JSON, by rank."""
        return [facts]

    def file_of_first(self, content: bytes | None) -> bytes:
        """The bytes that the first worker has."""
        return content or b""

    @contextmanager
    def together(self) -> Iterator[None]:
        """A context for joint work: an error in one worker is raised in all."""
        own: Exception | None = None
        try:
            yield
        except WorkerLost:
            raise
        except Exception as error:
            own = error
        if self.count > 1:
            said = self.exchange(None if own is None else _told(own))
            self.agreed_error = any(said)
            for rank, other in enumerate(said):
                if own is None and other is not None:
                    raise DataError(f"worker {rank} on {other['host']}: {other['text']}")
        if own is not None:
            raise own

    def check_same(self, facts: Mapping[str, Any]) -> None:
        """Refuse workers that differ from the first one in a fact, such as the version."""
        if self.count == 1:
            return
        said = self.exchange({"host": socket.gethostname(), "facts": dict(facts)})
        first = said[0]["facts"]
        for rank, other in enumerate(said):
            for name in first:
                if other["facts"].get(name) != first[name]:
                    self.agreed_error = True
                    raise QuestionError(
                        f"worker {rank} on {other['host']} has another {name} than worker 0 on {said[0]['host']}: "
                        f"{shortened(str(other['facts'].get(name)), 80)}, not {shortened(str(first[name]), 80)}."
                    )


def _told(error: Exception) -> dict[str, str]:
    file = getattr(error, "filename", None)
    text = str(error) if file is None else f"{file}: {getattr(error, 'strerror', None)}."
    return {"host": socket.gethostname(), "text": text}


ALONE = Workers()


class JoinedWorkers(Workers):
    """The processes of a group of ``torch.distributed``.

    Sums are computed by all-reduce: all workers get the same bits, which are reproducible with the same number of
    workers.

    Arguments:
        group: the group. Default: all processes.
    """

    def __init__(self, group: ProcessGroup | None = None) -> None:
        self.group, self.rank, self.count = group, distributed.get_rank(), distributed.get_world_size()

    def add(self, tensors: Sequence[Tensor]) -> None:
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        self._call("all_reduce", flat)
        parts = flat.split([tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view_as(tensor))

    def total(self, number: float) -> float:
        added = torch.tensor([number], dtype=torch.float64)
        self._call("all_reduce", added)
        return added.item()

    def copy_first(self, tensor: Tensor) -> None:
        self._call("broadcast", tensor, src=0)

    def exchange(self, facts: Any) -> list[Any]:
        own = torch.frombuffer(bytearray(json.dumps(facts).encode()), dtype=torch.uint8)
        sizes = torch.zeros(self.count, dtype=torch.int64)
        sizes[self.rank] = len(own)
        self._call("all_reduce", sizes)
        padded = torch.zeros(int(sizes.max()), dtype=torch.uint8)
        padded[: len(own)] = own
        found = [torch.empty_like(padded) for _ in range(self.count)]
        self._call("all_gather", found, padded)
        return [json.loads(bytes(each[:size].tolist())) for each, size in zip(found, sizes.tolist(), strict=True)]

    def file_of_first(self, content: bytes | None) -> bytes:
        size = torch.tensor([len(content or b"")])
        self.copy_first(size)
        data = torch.frombuffer(bytearray(content or bytes(int(size)) or b"\0"), dtype=torch.uint8)
        self.copy_first(data)
        return data.numpy().tobytes()[: int(size)]

    def _call(self, operation: str, *args: Any, **options: Any) -> None:
        try:
            getattr(distributed, operation)(*args, **options, group=self.group)
        except RuntimeError as error:  # the only class that gloo's errors have
            address = re.search(r"\[([0-9a-fA-F.:]+)\]:\d+", str(error))
            where = "" if address is None else f" on {address[1]}"
            raise WorkerLost(
                f"another worker{where} has ended or cannot be reached: the run can be resumed from its last "
                "checkpoint.",
                reason=str(error),
            ) from None
