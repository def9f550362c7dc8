"""Joining the other workers, as torchrun describes them in the environment of each process."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path

from torch import distributed
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

from made._version import __version__
from made.distributed.environment import is_launched, is_worker, restarts
from made.distributed.keepalive import kept_alive
from made.errors import WorkerLost
from made.model.folder import Folder, is_begun
from made.model.manifest import MANIFEST
from made.training.workers import ALONE, JoinedWorkers, Workers

JOINING = timedelta(seconds=25)  # for reaching the first worker
ARRIVING = 300.0  # seconds for the others to start, which takes long if they read the libraries over a network
SILENT = 20.0  # seconds of them without a note
PERIOD = 0.05  # seconds between looks at who has arrived
CONNECTING = timedelta(seconds=10)  # for reaching all others, when each of them is there
WAITING = timedelta(days=1)  # for the slowest worker, which may be reading a large file; one that is lost is noticed


@contextmanager
def joined(note: Callable[[str], None] = lambda text: None) -> Iterator[Workers]:
    """The workers that train together with this process; this one alone if nobody started more.

    Arguments:
        note: called with a sentence if workers are waited for.

    Example:
        >>> with joined() as workers:
        ...     print(workers.rank, workers.count)
        0 1
    """
    if is_launched():
        threading.Thread(target=_end_with_parent, daemon=True).start()
    if not is_worker() or os.environ["WORLD_SIZE"] == "1":
        yield ALONE
        return
    workers = _join(note)
    try:
        workers.check_same({"version of made": __version__})
        yield workers
        # Whoever has nothing left to do waits: a first worker that is lost while it writes the model loses all.
        with suppress(WorkerLost) if workers.rank == 0 else nullcontext():
            workers.exchange("done")
    finally:
        distributed.destroy_process_group()  # the others learn at once that this one has ended


def _join(note: Callable[[str], None]) -> JoinedWorkers:
    host, port, rank = (os.environ[name] for name in ("MASTER_ADDR", "MASTER_PORT", "RANK"))
    count, agent = int(os.environ["WORLD_SIZE"]), os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    try:
        shared = TCPStore(host, int(port), is_master=rank == "0" and not agent, timeout=JOINING, wait_for_workers=False)
        store = PrefixStore(f"made/{restarts()}", shared)
        store.set(f"arrived/{rank}", "")
        _wait_for_all(store, count, note)
        with kept_alive():
            distributed.init_process_group("gloo", store=store, rank=int(rank), world_size=count, timeout=CONNECTING)
            return JoinedWorkers(distributed.new_group(timeout=WAITING))
    except RuntimeError as error:
        raise WorkerLost(
            f"worker {rank} cannot reach the others by {host}, port {port}: check that address, the network between "
            "the machines, and on each of them GLOO_SOCKET_IFNAME, the name of its network interface.",
            reason=str(error),
        ) from None


def _wait_for_all(store: PrefixStore, count: int, note: Callable[[str], None]) -> None:
    begin, noted = time.monotonic(), False
    for rank in range(count):
        while not store.check([f"arrived/{rank}"]):
            time.sleep(PERIOD)
            waited = time.monotonic() - begin
            if waited > ARRIVING:
                raise WorkerLost(f"worker {rank} has not started within {ARRIVING:g} seconds: is its machine running?")
            if waited > SILENT and not noted:
                note(f"Note: worker {rank} of 0 to {count - 1} has not started yet, and is waited for.")
                noted = True


@contextmanager
def folder_of_first(workers: Workers, folder: Path) -> Iterator[Path]:
    """The model folder of the first worker; for all others, a copy of it, which is removed at the end."""
    if workers.count == 1:
        yield folder
        return
    files: dict[str, Path] = {}
    with workers.together():
        if workers.rank == 0 and is_begun(folder):
            files = {MANIFEST: folder / MANIFEST, **Folder.open(folder).places}
    names = workers.exchange(list(files))[0]
    if workers.rank == 0:
        for name in names:
            workers.file_of_first(files[name].read_bytes())
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="made-") as own:
        for name in names:
            (Path(own) / name).write_bytes(workers.file_of_first(None))
        yield Path(own)


def _end_with_parent() -> None:
    """Exit when the parent, which holds the other end of standard input, is gone."""
    while os.read(0, 1):
        pass
    os._exit(1)
