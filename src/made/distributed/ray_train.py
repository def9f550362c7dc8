"""Training on a Ray cluster: Ray Train places the workers and replaces lost ones. Needs the extra `ray`.

Each worker is a process with the environment that torchrun would give it, so that it trains as any other. The first one
writes to a folder of its machine, and every checkpoint is copied from there to the folder of the model, on the machine
where the command was given: whichever other machine is lost, the run resumes from it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

from made._version import __version__
from made.distributed.cluster import connected, unreachable
from made.distributed.environment import LAUNCHED
from made.distributed.launch import LOST
from made.errors import ClusterError, WorkerLost
from made.io.lock import hold
from made.model.folder import Folder, check_replaceable, commit, is_begun, manifest_text, real_path
from made.model.manifest import MANIFEST

PERIOD = 0.2  # seconds between looks at a worker
LOOK = 1.0  # seconds between looks at the cluster
SETTLING = 3.0  # seconds in which a failed worker may tell why, before the others take it for lost
REASON = 15.0  # seconds in which a worker may tell why all of them ended
CANNOT_WRITE = 3  # the exit code of the command line for files
MOST_FAILURES = 100
MOST_VAIN = 2  # of them, in a row, without a new checkpoint
WAIT = 1.0  # seconds for another process that writes to the same folder

Outcome = tuple[int, str, str]  # exit code, standard output, standard error


class Keeper:
    """The folder of the model, and what became of the run; an actor where the command was given."""

    def __init__(self, folder: str) -> None:
        self.folder, self.attempts = Path(folder), 0
        self.begun = self.before = manifest_text(self.folder)
        self.vain = self.failed = 0
        self.outcome: Outcome | None = None

    def begin(self) -> tuple[int, dict[str, bytes]]:
        """How often the workers were started again, and the files of the folder."""
        changed = self.begun is None or manifest_text(self.folder) != self.begun
        restarts, self.attempts = self.attempts if changed else 0, self.attempts + 1
        self.before = manifest_text(self.folder)
        if not is_begun(self.folder):
            return restarts, {}
        files = {MANIFEST: self.folder / MANIFEST, **Folder.open(self.folder).places}
        return restarts, {name: path.read_bytes() for name, path in files.items()}

    def keep(self, files: dict[str, bytes], finished: bool, unchanged: list[str]) -> None:
        """Replace the files of the folder; if it cannot be written to, the run ends: it would fail again and again."""
        try:
            commit(self.folder, files, finished=finished, keep=unchanged)
        except OSError as error:
            why = f"{error.filename}: {error.strerror}" if error.filename else str(error).rstrip(".")
            self.end(CANNOT_WRITE, "", f"Error: {why}.\n")

    def end(self, code: int, output: str, errors: str) -> None:
        """Record the outcome of the run; the first record wins."""
        self.outcome = self.outcome or (code, output, errors)

    def lost(self, errors: str) -> None:
        """Note that a worker has lost another one, or was lost; too often without a checkpoint ends the run."""
        if self.failed == self.attempts:  # another worker has said so
            return
        self.failed = self.attempts
        self.vain = self.vain + 1 if manifest_text(self.folder) == self.before else 0
        if self.vain > MOST_VAIN:
            text = "Error: workers were lost again and again before a checkpoint was written.\n"
            self.end(LOST, "", errors or text)

    def losses(self) -> int:
        """The last attempt in which a worker was lost, counted from 1."""
        return self.failed

    def ended(self) -> Outcome | None:
        """What became of the run; ``None`` before its end."""
        return self.outcome


def train_on_ray(
    address: str,
    command: Sequence[str],
    workers: int,
    folder: Path,
    note: Callable[[str], None] = lambda text: None,
    end: Callable[[Exception], object] = lambda error: None,
) -> Outcome:
    """Run `made` with these words in the workers of a Ray cluster, and return the outcome of the first one.

    Arguments:
        address: host:port of the head of the cluster; this machine is one of its nodes.
        command: the words of the command. Files are found in the same places on every machine.
        workers: the number of workers, each with one processor.
        folder: the folder of the model, on this machine.
        note: called with a sentence if the workers have to wait for processors.
        end: see :func:`made.distributed.cluster.connected`.
    """
    with connected(address, end) as ray, hold(real_path(folder), wait=WAIT), tempfile.TemporaryDirectory() as storage:
        check_replaceable(real_path(folder))
        from ray.train import FailureConfig, RunConfig, ScalingConfig
        from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        processors = ray.cluster_resources().get("CPU", 0)
        if processors < workers:
            raise ClusterError(f"the Ray cluster at {address} has {processors:g} processors for {workers} workers.")
        if ray.available_resources().get("CPU", 0) < workers:
            note("Note: the workers wait for processors of the cluster that are in use.")
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        keeper = ray.remote(Keeper).options(num_cpus=0, scheduling_strategy=here).remote(str(real_path(folder)))
        config = {
            "keeper": keeper,
            "command": list(command),
            "version": __version__,
            "folder": os.getcwd(),
            "out": str(folder),
        }

        def loop(config: dict[str, Any]) -> None:  # not by name, so that a machine without `made` can say so
            import socket

            import ray

            try:
                from made.distributed.ray_train import work
            except ImportError as error:
                text = f"Error: {socket.gethostname()} of the Ray cluster lacks this version of made: {error}.\n"
                ray.get(config["keeper"].end.remote(2, "", text))
                return
            work(config)

        trainer = DataParallelTrainer(
            loop,
            train_loop_config=config,
            scaling_config=ScalingConfig(num_workers=workers, placement_strategy="SPREAD"),
            run_config=RunConfig(storage_path=storage, failure_config=FailureConfig(max_failures=MOST_FAILURES)),
        )
        remedy = f"{folder} has the last checkpoint, if there was one, and --resume continues the run."
        try:
            _follow(ray, trainer.fit, keeper, workers, note)
        except WorkerLost as error:
            raise WorkerLost(f"the Ray cluster at {address} {error}. {remedy}") from None
        except Exception as error:
            raise ClusterError(
                f"the run on the Ray cluster at {address} was given up ({type(error).__name__}). {remedy}"
            ) from error
        outcome: Outcome | None = ray.get(keeper.ended.remote())
    return outcome or (LOST, "", "")


def _follow(ray: Any, fit: Callable[[], Any], keeper: Any, workers: int, note: Callable[[str], None]) -> None:
    """Wait for the end of a run, unless machines are lost, and too few are left: Ray would wait for others."""
    ended, lost = _in_thread(fit), 0
    while not wait([ended], LOOK).done:
        left, gone = ray.cluster_resources().get("CPU", 0), "a machine"
        before, lost = lost, ray.get(keeper.losses.remote())
        if lost > before:
            note("Note: a worker of the Ray cluster was lost; training resumes from the last checkpoint.")
            if silent := unreachable(ray):  # Ray notices later
                left, gone = left - sum(silent.values()), ", ".join(silent)
        if left < workers:
            raise WorkerLost(f"has lost {gone}, and has {left:g} processors for {workers} workers now")
    ended.result()


def _in_thread(function: Callable[[], Any]) -> Future[Any]:
    """Call a function in a thread, which does not keep the process from ending."""
    ended: Future[Any] = Future()

    def run() -> None:
        try:
            ended.set_result(function())
        except BaseException as error:
            ended.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return ended


def work(config: dict[str, Any]) -> None:
    """A worker of Ray Train: it runs the command, and the first one copies what it writes."""
    import ray
    from ray.train import get_context
    from ray.train.collective import broadcast_from_rank_zero

    keeper, rank, files = config["keeper"], get_context().get_world_rank(), {}
    group: dict[str, str] | None = None
    if rank == 0:
        restarts, files = ray.get(keeper.begin.remote())
        with socket.socket() as found:
            found.bind(("", 0))
            port = found.getsockname()[1]
        address = ray.util.get_node_ip_address()
        group = {"MASTER_ADDR": address, "MASTER_PORT": str(port), "TORCHELASTIC_RESTART_COUNT": str(restarts)}
    group = broadcast_from_rank_zero(group)
    assert group is not None
    if config["version"] != __version__:
        text = f"Error: {socket.gethostname()} of the Ray cluster has made {__version__}, not {config['version']}.\n"
        ray.get(keeper.end.remote(2, "", text))
        return
    places = {"RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": str(get_context().get_world_size())}
    group |= places | {"TORCHELASTIC_RUN_ID": LAUNCHED, "TORCH_CPP_LOG_LEVEL": "ERROR"}
    with tempfile.TemporaryDirectory(prefix="made-") as own:
        folder = Path(own) / "model"
        if files:
            folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        code, *texts = _run(config, group, folder)
    if code < 0 or code == LOST:
        ray.get(keeper.lost.remote(texts[1]))
        time.sleep(SETTLING)
        if ray.get(keeper.ended.remote()) is None:
            raise RuntimeError(f"worker {rank} was lost")
    elif code or rank == 0:
        if code and not texts[1]:
            _wait_for_reason(keeper)
        output, errors = (text.replace(str(folder), config["out"]) for text in texts)
        ray.get(keeper.end.remote(code, output, errors))


def _wait_for_reason(keeper: Any) -> None:
    """Wait until another worker has told why all of them ended: this one leaves that to it."""
    import ray

    end = time.monotonic() + REASON
    while time.monotonic() < end and ray.get(keeper.ended.remote()) is None:
        time.sleep(PERIOD)


def _run(config: dict[str, Any], group: dict[str, str], folder: Path) -> Outcome:
    """Run the command until it ends, or until another worker says how the run has ended."""
    import ray

    words = [sys.executable, "-m", "made", *config["command"], "--out", str(folder)]
    place = config["folder"] if Path(config["folder"]).is_dir() else None
    keeper, first = config["keeper"], group["RANK"] == "0"
    copier = Copier(folder, keeper)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        streams: Any = {"stdin": subprocess.PIPE, "stdout": output, "stderr": errors}
        process = subprocess.Popen(words, env=os.environ | group, cwd=place, **streams)
        try:
            while process.poll() is None:
                time.sleep(PERIOD)
                if first:
                    copier.copy()
                if ray.get(keeper.ended.remote()) is not None:
                    break
        finally:
            process.kill()
            process.communicate()
        if first:
            copier.copy()
        texts = []
        for stream in (output, errors):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    return process.returncode, texts[0], texts[1]


class Copier:
    """Sends the files of a folder to the keeper whenever they have changed."""

    def __init__(self, folder: Path, keeper: Any) -> None:
        self.folder, self.keeper = folder, keeper
        self.text: bytes | None = None
        self.kept: set[tuple[str, str]] = set()  # names and digests

    def copy(self) -> None:
        """Send what is new, unless the files are changing now."""
        import ray

        text = manifest_text(self.folder)
        if text is None or text == self.text:
            return
        try:
            found = Folder.open(self.folder)
            digests = {(name, written.sha256) for name, written in found.manifest.files.items()}
            files = {name: found.places[name].read_bytes() for name, _ in digests - self.kept}
        except (ValueError, OSError):
            return
        if manifest_text(self.folder) == text:
            ray.get(self.keeper.keep.remote(files, found.finished, [name for name, _ in digests & self.kept]))
            self.text, self.kept = text, digests
