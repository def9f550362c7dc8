"""How a network of a baseline learns: small batches, AdamW, averaged weights, and the best of all epochs.

The engine has a loop of its own (:mod:`trainer`), which can be stopped anywhere and go on with the same bits.
This one is for other networks, and only as long as it has to be; the config is the same.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import torch
from torch import Tensor, nn

from made.errors import Diverged
from made.training.config import TrainingConfig, learning_rate_at, make_optimizer
from made.training.trainer import SMALL

__all__ = ["Report", "learn", "one_thread", "repeated", "shares", "updates_of"]

# Told after each epoch: its number, the mean log-likelihood of validation rows, and the seconds so far.
Report = Callable[[int, float, float], None]


def shares(x: Tensor) -> Tensor:
    """How often each column is 1, as if there were one row more of either kind. Shapes: (rows, D) to (D)."""
    return (x.sum(dim=0) + 1) / (len(x) + 2)


def repeated(x: Tensor, least: int) -> Tensor:
    """Rows, repeated as a whole until they are so many at least, for an epoch that is worth its validation."""
    return x.repeat(math.ceil(least / len(x)), 1)


def updates_of(config: TrainingConfig, rows: Tensor) -> int:
    """How many updates a run has at the most."""
    return config.max_epochs * math.ceil(len(rows) / config.batch_size)


@contextmanager
def one_thread(small: bool = True) -> Iterator[None]:
    """Work on one thread what is small: where other programs run, several wait for each other most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if small else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def learn(
    network: nn.Module,
    rows: Tensor,
    loss: Callable[[Tensor, torch.Generator], Tensor],
    score: Callable[[], float],
    config: TrainingConfig,
    report: Report | None = None,
    slower: Mapping[str, float] = MappingProxyType({}),
) -> tuple[int, int]:
    """Give a network the weights that are best on validation rows.

    Its biases, parameters whose names begin with b or c, are not decayed. With ``config.max_seconds``, the time is
    looked at after each update, and the schedule of the learning rate comes to its end with the time.

    Arguments:
        network: what learns; it is in training mode for ``loss``, and in evaluation mode for ``score``.
        rows: the rows to learn from.
        loss: of some of the rows, with a source of randomness.
        score: the mean log-likelihood of validation rows, which are not looked at here.
        config: how to learn.
        report: told after each epoch.
        slower: what the learning rate of some parameters is divided by.

    Returns:
        The number of the best epoch, from 0, and how many there were.
    """
    with one_thread(sum(weight.numel() for weight in network.parameters()) * config.batch_size <= SMALL):
        return _learn(network, rows, loss, score, config, report, slower)


def _learn(
    network: nn.Module,
    rows: Tensor,
    loss: Callable[[Tensor, torch.Generator], Tensor],
    score: Callable[[], float],
    config: TrainingConfig,
    report: Report | None,
    slower: Mapping[str, float],
) -> tuple[int, int]:
    begin, limit = time.perf_counter(), config.max_seconds or math.inf
    generator = torch.Generator().manual_seed(config.seed)
    parameters = dict(network.named_parameters())
    weights: list[Tensor] = list(parameters.values())
    optimizer = make_optimizer(
        parameters, config.optimizer, config.learning_rate, config.epsilon, config.momentum, config.weight_decay, slower
    )
    average = [weight.detach().clone() for weight in weights]
    best, best_epoch, best_score, waited, update, epoch = average, 0, -math.inf, 0, 0, -1
    per_epoch, updates = math.ceil(len(rows) / config.batch_size), updates_of(config, rows)
    for epoch in range(config.max_epochs):
        network.train()
        for batch in torch.randperm(len(rows), generator=generator).split(config.batch_size):
            share = max(update / updates, (time.perf_counter() - begin) / limit)
            if share >= 1:
                break
            for group in optimizer.param_groups:
                group["lr"] = group["initial_lr"] * learning_rate_at(config.schedule, share, update / per_epoch)
            optimizer.zero_grad()
            value = loss(rows[batch], generator)
            value.backward()
            norm = nn.utils.clip_grad_norm_(weights, config.clip or math.inf)
            if not (math.isfinite(value.item()) and math.isfinite(norm.item())):
                raise Diverged(f"update {update} (epoch {epoch}): not finite. Remedy: a lower 'learning_rate'.")
            optimizer.step()
            update += 1
            decay = min(config.average or 0.0, update / (9 + update))  # what it began with is soon forgotten
            torch._foreach_lerp_(average, [weight.detach() for weight in weights], 1 - decay)
        network.eval()
        own = [weight.detach().clone() for weight in weights]
        _put(weights, average)
        found = score()
        waited += 1
        if found > best_score:
            best, best_epoch, best_score, waited = [weight.clone() for weight in average], epoch, found, 0
        _put(weights, own)
        seconds = time.perf_counter() - begin
        if report is not None:
            report(epoch, found, seconds)
        if waited >= config.patience or seconds >= limit:
            break
    _put(weights, best)
    network.eval()
    return best_epoch, epoch + 1


def _put(weights: list[Tensor], values: list[Tensor]) -> None:
    with torch.no_grad():
        torch._foreach_copy_(weights, values)
