"""What torchrun, or whoever starts workers in its place, says in the environment of each worker."""

from __future__ import annotations

import os

from made.errors import QuestionError
from made.hints import argument

LAUNCHED = "made"  # the run id of workers that were started by :mod:`made.distributed.launch`, and end with it


def is_worker() -> bool:
    """Whether this process was started as a worker, possibly as the only one."""
    return {"TORCHELASTIC_RUN_ID", "WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()


def is_launched() -> bool:
    """Whether :mod:`made.distributed.launch` started this process, and starts it again if a worker is lost."""
    return is_worker() and os.environ["TORCHELASTIC_RUN_ID"] == LAUNCHED


def rank() -> int:
    """The number of this worker; 0 for a process that is none."""
    return int(os.environ["RANK"]) if is_worker() else 0


def is_first_here() -> bool:
    """Whether this worker is the first one on its machine: another machine may be gone, or its output far away."""
    return rank() == 0 or os.environ.get("LOCAL_RANK") == "0"


def restarts() -> int:
    """How often the workers were started again after one of them was lost. They then resume the run."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) if is_worker() else 0


def check_options(workers: int | None, overwrite: bool) -> None:
    """Refuse options that contradict how the workers were started."""
    count = int(os.environ["WORLD_SIZE"])
    if workers not in (None, count):
        told = f"{argument('workers')} is {workers}, but torchrun has started {count}: leave it out."
        raise QuestionError(told, argument="workers")
    if overwrite and not is_launched() and int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0")):
        raise QuestionError(
            f"{argument('overwrite')} cannot be combined with torchrun --max-restarts: after a restart, the run could "
            "not be told from the model that it replaces. Remove the folder, or choose another one.",
            argument="overwrite",
        )
