"""Gradient training of the baselines' networks: their shared base class, and the loop with early stopping.

MADE has its own trainer (:mod:`made.training.trainer`). This loop resumes after its last epoch, if it has a checkpoint.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from made.baselines.checkpoint import Progress, load_progress, save_progress
from made.baselines.protocol import Baseline, Bits
from made.errors import Diverged
from made.network.threads import SMALL, single_thread
from made.training.config import Optimizer, TrainingConfig, learning_rate_at, make_optimizer

# Called after each epoch with its number, the mean log-likelihood of the validation rows, and the seconds so far.
EpochReport = Callable[[int, float, float], None]
Loss = Callable[[Tensor, torch.Generator], Tensor]
NO_SETTINGS = ("report", "checkpoint", "size", "epochs")  # attributes of a system that do not change its training


class GradientBaseline(Baseline):
    """Base class of the baselines that are trained by gradient descent.

    Arguments:
        seed: seed of the initial weights, the batches and every other random choice.
        report: called after each epoch, see :data:`EpochReport`; default: no report.
        training: overrides of :attr:`TRAINING`, fields of :class:`made.training.config.TrainingConfig`.

    Attributes:
        size: number of learned parameters.
        epochs: number of epochs trained.
        best_epoch_: the epoch whose weights were kept, by the validation rows.
        checkpoint: the file to resume training from, and to write after each epoch; for ``resumable`` systems only,
            whose loss has no state of its own.
    """

    resumable: ClassVar[bool] = False
    checkpoint: Path | None = None

    TRAINING: ClassVar[dict[str, Any]] = {"learning_rate": 1e-2, "schedule": "cosine", "clip": 5.0, "average": 0.99}
    TRAINING |= {"weight_decay": 0.0, "batch_size": 100, "max_epochs": 100, "patience": 20}

    def __init__(self, *, seed: int = 0, report: EpochReport | None = None, **training: Any) -> None:
        self.seed, self.report, self.training = seed, report, self.TRAINING | training

    def config(self, seconds: float | None = None, **overrides: Any) -> TrainingConfig:
        """The training configuration, with a limit of time."""
        return TrainingConfig(**({"max_seconds": seconds} | self.training | overrides), seed=self.seed)

    def optimize(
        self, network: nn.Module, rows: Tensor, loss: Loss, score: Callable[[], float], config: TrainingConfig
    ) -> None:
        """Train a network, and keep the averaged weights of the epoch with the best validation score.

        Biases, parameters whose names begin with b or c, are not decayed. The time limit ``config.max_seconds`` is
        checked before each update, and the learning rate schedule ends with it.

        Arguments:
            network: in training mode when ``loss`` is called, in evaluation mode for ``score``. Its ``slower``, if any,
                has divisors of the learning rate, by parameter name.
            rows: the training rows.
            loss: the loss of a batch, given a source of randomness.
            score: the mean log-likelihood of the validation rows.
            config: the training configuration.
        """
        parameters = dict(network.named_parameters())
        weights: list[Tensor] = list(parameters.values())
        self.size = sum(weight.numel() for weight in weights)
        # Ten times as much as where training may choose by the clock, which this loop does not.
        with single_thread(self.size * config.batch_size <= SMALL):
            limit, generator = config.max_seconds or math.inf, torch.Generator().manual_seed(config.seed)
            how = (config.optimizer, config.learning_rate, config.epsilon, config.momentum, config.weight_decay)
            optimizer = make_optimizer(parameters, *how, getattr(network, "slower", {}))
            average = [weight.detach().clone() for weight in weights]
            best, done, per_epoch = average, Progress(), math.ceil(len(rows) / config.batch_size)
            own = {name: value for name, value in vars(self).items() if name not in NO_SETTINGS and name[-1] != "_"}
            settings = f"{type(self).__name__}, {sorted(own.items())}, {config}, {len(rows)} rows"
            if self.checkpoint is not None and (found := load_progress(self.checkpoint, settings, generator)):
                done, tensors = found
                best = _restore(tensors, weights, average, optimizer)
            begin = time.perf_counter() - done.seconds
            while done.epochs < config.max_epochs and done.waited < config.patience and done.seconds < limit:
                network.train()
                for batch in torch.randperm(len(rows), generator=generator).split(config.batch_size):
                    share = max(done.updates / (config.max_epochs * per_epoch), (time.perf_counter() - begin) / limit)
                    if share >= 1:
                        break
                    rate = learning_rate_at(config.schedule, share, done.updates / per_epoch)
                    for group in optimizer.param_groups:
                        group["lr"] = group["initial_lr"] * rate
                    for weight in weights:
                        weight.grad = None
                    value = loss(rows[batch], generator)
                    value.backward()
                    norm = nn.utils.clip_grad_norm_(weights, config.clip or math.inf)
                    if not (math.isfinite(value.item()) and math.isfinite(norm.item())):
                        where = f"update {done.updates} (epoch {done.epochs})"
                        raise Diverged(f"{where}: not finite. Remedy: a lower 'learning_rate'.")
                    optimizer.step()
                    done.updates += 1
                    # The initial weights fade out soon.
                    decay = min(config.average or 0.0, done.updates / (9 + done.updates))
                    torch._foreach_lerp_(average, [weight.detach() for weight in weights], 1 - decay)
                network.eval()
                current = [weight.detach().clone() for weight in weights]
                _assign(weights, average)
                found_score, done.waited = score(), done.waited + 1
                if found_score > done.best_score:
                    best, done.best_score, done.waited = [weight.clone() for weight in average], found_score, 0
                    done.best_epoch = done.epochs
                _assign(weights, current)
                done.epochs, done.seconds = done.epochs + 1, time.perf_counter() - begin
                if self.checkpoint is not None and math.isfinite(done.best_score):
                    tensors = _tensors(weights, average, best, optimizer)
                    save_progress(self.checkpoint, settings, done, tensors, generator)
                if self.report is not None:
                    self.report(done.epochs - 1, found_score, done.seconds)
            self.best_epoch_, self.epochs = done.best_epoch, done.epochs
            _assign(weights, best)
            network.eval()


def _assign(weights: list[Tensor], values: list[Tensor]) -> None:
    with torch.no_grad():
        torch._foreach_copy_(weights, values)


def _tensors(
    weights: list[Tensor], average: list[Tensor], best: list[Tensor], optimizer: Optimizer
) -> dict[str, Tensor]:
    """All tensors of a training run, by name."""
    parts: dict[str, dict[str, Tensor]] = {}
    for number, (weight, mean, kept) in enumerate(zip(weights, average, best, strict=True)):
        parts[str(number)] = {"weight": weight, "average": mean, "best": kept} | optimizer.state[weight]
    return {f"{number}.{name}": tensor for number, named in parts.items() for name, tensor in named.items()}


def _restore(
    tensors: dict[str, Tensor], weights: list[Tensor], average: list[Tensor], optimizer: Optimizer
) -> list[Tensor]:
    """Restore the state of a training run from its tensors, and return the best weights."""
    best = []
    for number, (weight, mean) in enumerate(zip(weights, average, strict=True)):
        named = {name.partition(".")[2]: each for name, each in tensors.items() if name.startswith(f"{number}.")}
        _assign([weight, mean], [named.pop("weight"), named.pop("average")])
        best.append(named.pop("best"))
        optimizer.state[weight].update(named)
    return best


def floats(*tables: Bits) -> Iterator[Tensor]:
    """Rows as tensors."""
    return (torch.from_numpy(table).float() for table in tables)


def column_means(x: Tensor) -> Tensor:
    """The frequency of ones in each column, with add-one smoothing. Shapes: (rows, D) to (D)."""
    return (x.sum(dim=0) + 1) / (len(x) + 2)


def repeat_rows(x: Tensor, least: int) -> Tensor:
    """The table repeated until it has at least ``least`` rows: a longer epoch between validations."""
    return x.repeat(math.ceil(least / len(x)), 1)
