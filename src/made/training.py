r"""The loop: updates, validation, early stopping.

The paper's procedure: mini-batches, one mask for each update, and after each epoch the likelihood of validation rows
under the ensemble; when it has not risen for ``patience`` epochs, training ends, and the best weights are kept. The
order of the rows in epoch e and the mask of update t are functions of (seed, e) and of t.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from made.columns import Rows
from made.connectivity import Connectivity
from made.likelihood import Question, log_likelihood, log_prob
from made.network import Network

__all__ = ["Epoch", "train"]


@dataclass(frozen=True)
class Epoch:
    """What is known after an epoch: negative log-likelihoods in nats, the mean over rows.

    That of training is of what was asked for in its updates, which may be part of the rows.
    """

    number: int
    train_nll: float
    valid_nll: float
    best_nll: float
    seconds: float


def train(
    network: Network,
    rows: Rows,
    valid: Rows,
    *,
    learning_rate: float = 1e-3,
    weight_decay: float = 0.0,
    batch_size: int = 100,
    max_epochs: int = 500,
    patience: int = 30,
    mask_for: Literal["update", "row"] = "update",
    questions: float = 0.5,
    masks: int | None = None,
    seed: int = 0,
    report: Callable[[Epoch], None] = lambda epoch: None,
) -> list[Epoch]:
    """Train a network by maximum likelihood, with Adam; it ends with the weights of its best epoch.

    Arguments:
        network: the network.
        rows: the rows to train on.
        valid: the rows that choose the epoch.
        learning_rate, weight_decay: of AdamW.
        batch_size: the number of rows in an update.
        max_epochs: the most passes over the rows.
        patience: the look-ahead: training ends after this many epochs without progress.
        mask_for: whether a mask is taken for each update, or, as the paper also considers, for each row of it: a pass
            for every mask that differs, which is slow. An update with questions has one mask, under which rows differ.
        questions: the share of an any-order model's updates in which rows have random holes and givens, so that it is
            asked later for what it was trained on.
        masks: how many masks an unlimited model averages to validate; 16 unless told.
        seed: the seed of the order of rows, and of dropout.
        report: called after each epoch.

    Returns:
        The epochs.
    """
    data = Question.ask(network, rows)
    if data.observed is not None:
        raise ValueError("'rows' should have no NaN: to learn from rows with holes is not possible yet.")
    if mask_for not in ("update", "row"):
        raise ValueError(f"'mask_for' should be update or row, not {mask_for!r}.")
    checked = Question.ask(network, valid)
    for name, question in (("rows", data), ("valid", checked)):
        if len(question) == 0:
            raise ValueError(f"'{name}' should have at least one row.")
    if batch_size < 1:
        raise ValueError(f"'batch_size' should be at least 1, not {batch_size}.")
    optimizer = torch.optim.AdamW(network.parameters(), lr=learning_rate, weight_decay=weight_decay, fused=True)
    generator = torch.Generator(data.values.device)
    best, best_nll, waited = None, float("inf"), 0
    history: list[Epoch] = []
    update, mask, start = 0, 0, time.perf_counter()
    for number in range(max_epochs):
        network.train()
        order = np.argsort(np.random.Philox(key=seed, counter=[0, 0, number, 1]).random_raw(len(data)), kind="stable")
        total = 0.0
        for batch in torch.from_numpy(order).to(data.values.device).split(batch_size):
            generator.manual_seed(int(np.random.Philox(key=seed, counter=[0, 0, update, 2]).random_raw() >> 1))
            optimizer.zero_grad()
            numbers: int | Connectivity | range = mask if mask_for == "update" else range(mask, mask + len(batch))
            asked = data[batch]
            if (
                network.connectivities.any_order
                and torch.rand((), generator=generator, device=data.values.device).item() < questions
            ):
                asked = _ask_at_random(asked, generator)
                numbers = network.connectivities.draw(mask, lowest=0)
            loss = -log_likelihood(network, asked, numbers, generator=generator).mean()
            loss.backward()
            optimizer.step()
            update += 1
            mask += 1 if mask_for == "update" else len(batch)
            total += loss.item() * len(batch)
        if not np.isfinite(total):
            if best is not None:
                network.load_state_dict(best)
            raise FloatingPointError(f"the loss is not finite in epoch {number}: lower 'learning_rate'.")
        network.eval()
        valid_nll = -log_prob(network, checked, masks=masks).mean().item()
        waited += 1
        if valid_nll < best_nll:
            best_nll, waited = valid_nll, 0
            best = {name: value.clone() for name, value in network.state_dict().items()}
        history.append(Epoch(number, total / len(data), valid_nll, best_nll, time.perf_counter() - start))
        report(history[-1])
        if waited >= patience:
            break
    if best is not None:
        network.load_state_dict(best)
    return history


def _ask_at_random(question: Question, generator: torch.Generator) -> Question:
    """Make some entries of each row given and some holes, shares and entries drawn at random; one is always asked."""
    values = question.values
    share = torch.rand(len(values), 2, generator=generator, device=values.device).sort(dim=1).values
    role = torch.rand(values.shape, generator=generator, device=values.device)
    given, asked = role < share[:, :1], role >= share[:, 1:]
    one = torch.randint(values.shape[1], (len(values), 1), generator=generator, device=values.device)
    asked.scatter_(1, one, True)
    return Question(values, asked | given, given & ~asked)
