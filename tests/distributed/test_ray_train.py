"""The folder of a run on a Ray cluster, and what became of the run; without a cluster."""

from __future__ import annotations

import errno
import os
import time

import pytest

from made.distributed import ray_train
from made.distributed.ray_train import Keeper
from made.errors import WorkerLost


def test_a_disk_that_is_full_ends_the_run_with_a_sentence(tmp_path, monkeypatch) -> None:
    def full(folder, files, **options) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder / "checkpoint-1.safetensors"))

    monkeypatch.setattr(ray_train, "commit", full)
    keeper = Keeper(str(tmp_path))
    keeper.keep({}, finished=False, unchanged=[])
    file = tmp_path / "checkpoint-1.safetensors"
    assert keeper.ended() == (3, "", f"Error: {file}: No space left on device.\n")


def test_a_loss_counts_once_however_many_workers_tell_of_it(tmp_path) -> None:
    keeper = Keeper(str(tmp_path / "model"))
    for attempt in (1, 2):
        keeper.begin()
        keeper.lost("")
        keeper.lost("")
        assert (keeper.losses(), keeper.vain) == (attempt, attempt)


def test_losses_without_a_checkpoint_between_them_end_the_run(tmp_path) -> None:
    keeper = Keeper(str(tmp_path / "model"))
    for _ in range(ray_train.MOST_VAIN + 1):
        assert keeper.ended() is None
        keeper.begin()
        keeper.lost("")
    outcome = keeper.ended()
    assert outcome is not None
    assert outcome[0] == 6
    assert "before a checkpoint was written" in outcome[2]


@pytest.mark.parametrize("silent", [False, True])
def test_a_cluster_with_too_few_processors_after_a_loss_is_not_waited_for(monkeypatch, silent) -> None:
    """Whether Ray knows of the loss, or only its machine does not answer."""

    class Ray:
        def cluster_resources(self) -> dict[str, float]:
            return {"CPU": 2.0 if silent else 1.0}

        def get(self, number: int) -> int:
            return number

    class Lost:
        class losses:  # noqa: N801
            @staticmethod
            def remote() -> int:
                return 1

    monkeypatch.setattr(ray_train, "LOOK", 0.01)
    monkeypatch.setattr(ray_train, "unreachable", lambda ray: {"10.0.0.2": 1.0} if silent else {})
    notes: list[str] = []
    gone = "10.0.0.2" if silent else "a machine"
    with pytest.raises(WorkerLost, match=f"has lost {gone}, and has 1 processors for 2 workers now"):
        ray_train._follow(Ray(), lambda: time.sleep(5), Lost(), 2, notes.append)
    assert len(notes) == 1
