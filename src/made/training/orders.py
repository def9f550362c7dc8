"""Select the orderings in which whole rows are predicted.

The chain rule holds in every ordering, but a network learns some better than others: a number that nearly follows from
several categories is easier to predict after them than they are after the number. So a small network is trained for a
short time on random parts of rows, many orderings are scored with it, and likely ones are selected. The large network
finds these likely, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from made.columns.group import Columns
from made.network.connectivity import Connectivities
from made.network.masked import Network
from made.network.threads import single_thread
from made.queries.evidence import Evidence
from made.queries.incremental import log_prob_in_order
from made.streams import CANDIDATE, philox
from made.training.config import TrainingConfig
from made.training.order import epoch_rows, some_rows
from made.training.trainer import Trainer

Order: TypeAlias = tuple[int, ...]
UNITS, RATE = 64, 0.004
SHARE, FEWEST, UPDATES = 0.1, 100, 500  # updates of the small network: of all, at least, and at most
SHORT = 60  # a run of fewer seconds has no time for it
ROWS = 512  # by which orderings are scored
PASSES = 4096  # for all candidates together, each of which takes a pass for each position
LEAST, MOST = 32, 256  # candidates
ROUNDS, PARENTS = 2, 8  # of variants of the best orderings, and how many these are


def select_orders(columns: Columns, rows: Evidence, count: int, config: TrainingConfig) -> list[list[int]]:
    """The likeliest orderings, each as the positions of a natural ordering, first to last.

    Arguments:
        columns: the columns.
        rows: the training rows.
        count: the number of orderings to select.
        config: the training configuration, of which the small network takes the batches, the decay and the seed. A
            short run has no time for a search: there is no ordering then.

    Example:
        The second column follows from the first one, and is easier to learn after it.

        >>> first = torch.arange(200.0).remainder(7)
        >>> rows = Evidence(torch.stack([first, first.remainder(2)], dim=1))
        >>> from made.columns.discrete import Binary, Categorical
        >>> columns, config = Columns([Categorical(7), Binary()]), TrainingConfig(batch_size=20, max_epochs=200)
        >>> select_orders(columns, rows, 2, config)
        [[0, 1], [1, 0]]
    """
    updates = min(int(SHARE * config.count_updates(epoch_rows(len(rows)))), UPDATES)
    if updates < FEWEST or (config.max_seconds is not None and config.max_seconds < SHORT):
        return []
    network = _small_network(columns, rows, updates, config)
    log_p = partial(log_prob_in_order, network, rows[some_rows(len(rows), ROWS)])
    with single_thread():
        found = _search(log_p, network.connectivities.positions, count, config.seed)
    return [list(order) for order in found]


def _small_network(columns: Columns, rows: Evidence, updates: int, config: TrainingConfig) -> Network:
    family = Connectivities(
        len(columns), (UNITS,), masks=None, ordering="random", groups=columns.groups, seed=config.seed
    )
    network = Network(columns, family, direct=True, initialization="zero-output").to(rows.values)
    some = rows[some_rows(len(rows), updates * config.batch_size)]
    network.start_independent(some.values, some.observed)
    short = TrainingConfig(
        learning_rate=RATE,
        schedule="cosine",
        clip=1.0,
        weight_decay=config.weight_decay,
        batch_size=config.batch_size,
        max_epochs=math.ceil(updates * config.batch_size / len(some)),
        segments=family.positions,
        nearly_complete=config.nearly_complete,
        number_weight=config.number_weight,
        seed=config.seed,
    )
    Trainer(network, some, None, short).run()
    return network.eval()


def _search(log_p: Callable[[Order], Tensor], positions: int, count: int, seed: int) -> list[Order]:
    """Orderings under which the mean of probabilities is large, chosen one after the other.

    Candidates are the natural ordering, random ones, and variants of the best of these. A set of the very best ones
    would be worse: they are alike, and a mean gains from members that differ.

    Arguments:
        log_p: log p of each row in an ordering.
        positions: the length of an ordering.
        count: how many to choose.
        seed: the seed of the candidates.
    """
    random = np.random.Generator(philox(seed, CANDIDATE))
    most = min(max(PASSES // positions, LEAST), MOST)
    natural = tuple(range(positions))
    found = {natural: log_p(natural)}

    def add(order: Order) -> None:
        if order not in found:
            found[order] = log_p(order)

    for _ in range(most // 2):
        add(tuple(random.permutation(positions).tolist()))
    for _ in range(ROUNDS):
        best = sorted(found, key=lambda order: -found[order].mean().item())[:PARENTS]
        for _ in range(most // 2 // ROUNDS):
            add(_variant(list(best[random.integers(len(best))]), random))
    orders, together = list(found), torch.stack(list(found.values()))
    total, chosen = torch.full_like(together[0], -torch.inf), list[int]()
    for _ in range(min(count, len(orders))):
        gains = torch.logaddexp(total, together).mean(dim=1)
        gains[chosen] = -torch.inf
        chosen.append(int(gains.argmax()))
        total = torch.logaddexp(total, together[chosen[-1]])
    return [orders[number] for number in chosen]


def _variant(order: list[int], random: np.random.Generator) -> Order:
    """An ordering with one to three columns moved."""
    for _ in range(random.integers(1, 4)):
        order.insert(random.integers(len(order)), order.pop(random.integers(len(order))))
    return tuple(order)
