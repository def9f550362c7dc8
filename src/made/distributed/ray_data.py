"""Questions about tables on a Ray cluster: Ray Data reads the files, and any worker answers any block of rows.

The machine where the command is given has the model, and gets the answers in the order of the rows. What a worker was
reading or answering when it was lost, another one does again.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

from made._version import __version__
from made.distributed.cluster import connected, unreachable
from made.errors import ClusterError, DataError
from made.model.folder import Folder, unpacked
from made.model.manifest import MANIFEST

LOOK = 10.0  # seconds between looks at the machines of the cluster
READING = 0.5  # processors for reading a file; not as for answers, or Ray would fuse both into one task

T_co = TypeVar("T_co", covariant=True)
# Of a data set of Ray: "content" is a block, an answer or an error, "failure" a sentence from a machine without `made`.
Row = dict[str, Any]


class BlockQuestion(Protocol[T_co]):
    """A question about blocks of rows, which is sent to the workers."""

    def blocks(self, source: str) -> Iterator[Any]:
        """The blocks of a file."""

    def open(self, folder: Path) -> Callable[[int, int, Any], T_co]:
        """The question to the model in a folder: a function of the number of a file, that of a block, and its rows."""


def answers_on_ray(
    address: str,
    question: BlockQuestion[T_co],
    folder: Path,
    sources: Sequence[str],
    begin: tuple[int, int] = (0, 0),
    note: Callable[[str], None] = lambda text: None,
    end: Callable[[Exception], object] = lambda error: None,
) -> Generator[T_co]:
    """The answers to all blocks of some files, in their order.

    Arguments:
        address: host:port of the head of the cluster; this machine is one of its nodes.
        question: the question.
        folder: the folder of the model, on this machine.
        sources: the files, in the same places on every machine.
        begin: the numbers of the first file and of its first block.
        note: called with a sentence if there are no processors to begin with, or if a machine does not answer.
        end: see :func:`made.distributed.cluster.connected`.
    """
    places = {MANIFEST: folder / MANIFEST, **Folder.open(folder).places}
    files = {name: path.read_bytes() for name, path in places.items()}
    with connected(address, end) as ray:
        from ray import cloudpickle, data

        if ray.available_resources().get("CPU", 0) < 1:
            note("Note: the query waits for processors of the cluster that are in use.")
        sent, version = ray.put((question, files)), __version__

        def on_worker(function: str, *args: Any) -> Any:  # not by name, so that a machine without `made` can say so
            import socket

            import ray

            host = f"{socket.gethostname()} ({ray.util.get_node_ip_address()}) of the Ray cluster"
            try:
                from made._version import __version__ as own
                from made.distributed import ray_data
            except ImportError as error:
                return f"{host} lacks this version of made: {error}."
            if own != version:
                return f"{host} has made {own}, not {version}."
            return getattr(ray_data, function)(sent, host, *args)

        def read(batch: Row) -> Iterator[Row]:
            found = on_worker("read_blocks", *(batch[name][0] for name in ("file", "source", "begin")))
            yield from [{"content": [b""], "failure": [found]}] if isinstance(found, str) else found

        def answer(row: Row) -> Row:
            found = row["failure"] or on_worker("answer_block", row["content"])
            return {"content": b"", "failure": found} if isinstance(found, str) else found

        units = [
            {"file": number, "source": source, "begin": begin[1] if number == begin[0] else 0}
            for number, source in enumerate(sources)
            if number >= begin[0]
        ]
        _configure(data)
        dataset = data.from_items(units, override_num_blocks=len(units))
        dataset = dataset.map_batches(read, batch_size=1, num_cpus=READING)
        # Closed before the connection is, which Ray Data still needs for that.
        with _watching(ray, note), closing(iter(dataset.map(answer, num_cpus=1).iter_rows())) as answered:
            while True:
                try:
                    row = next(answered, None)
                except Exception as error:
                    text = (str(error).splitlines() or [""])[0].rstrip(".")
                    raise ClusterError(
                        f"the Ray cluster at {address} has given up ({type(error).__name__}: {text})."
                    ) from error
                if row is None:
                    return
                if row["failure"]:
                    raise ClusterError(row["failure"])
                content = cloudpickle.loads(row["content"])
                if isinstance(content, Exception):
                    raise content
                yield content


@contextmanager
def _watching(ray: Any, note: Callable[[str], None]) -> Iterator[None]:
    """Name machines that do not answer: Ray waits for them for minutes before others do their work."""
    ended, known = threading.Event(), set[str]()

    def watch() -> None:
        while not ended.wait(LOOK):
            with suppress(Exception):  # the head is gone, too, which the answers will say
                silent = unreachable(ray).keys() - known
                known.update(silent)
                for address in sorted(silent):
                    note(f"Note: {address} of the Ray cluster does not answer; in a few minutes, others do its work.")

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def read_blocks(sent: Any, host: str, file: int, source: str, begin: int) -> Iterator[Row]:
    """On a worker: the blocks of a file from one on, and the error that ends them if there is one."""
    from ray import cloudpickle

    try:
        for number, rows in enumerate(itertools.islice(_opened(sent)[0].blocks(source), int(begin), None), int(begin)):
            yield {"content": [cloudpickle.dumps((int(file), number, _compact(rows)))], "failure": [""]}
    except Exception as error:
        told = DataError(f"{host}: {error}") if isinstance(error, (DataError, OSError)) else error
        yield {"content": [cloudpickle.dumps(told)], "failure": [""]}


def answer_block(sent: Any, host: str, content: bytes) -> Row:
    """On a worker: the answer to a block, or the error that it caused."""
    from ray import cloudpickle

    block = cloudpickle.loads(content)
    if isinstance(block, Exception):
        return {"content": content, "failure": ""}
    try:
        answer: Any = _opened(sent)[1](*block)
    except Exception as error:
        answer = error
    return {"content": cloudpickle.dumps(answer), "failure": ""}


@lru_cache(maxsize=1)
def _opened(sent: Any) -> tuple[BlockQuestion[Any], Callable[[int, int, Any], Any]]:
    """The question, alone and to the model; for all blocks that a worker gets."""
    import ray

    question, files = ray.get(sent)
    return question, unpacked(files, question.open)


def _compact(rows: Any) -> Any:
    """The same rows; of a table, without the rest of the buffers that it is a part of."""
    import pyarrow as pa

    if not isinstance(rows, pa.Table):
        return rows
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


def _configure(data: Any) -> None:
    """Keep the order of blocks, do not merge blocks, and print nothing."""
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    context = data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = context.print_on_execution_start = False
    context.target_max_block_size = 1
