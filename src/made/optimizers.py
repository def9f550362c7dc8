"""How weights are updated: the optimisers that the paper uses and those that people use now, and learning rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

__all__ = ["OPTIMIZERS", "SCHEDULES", "learning_rate_at", "make_optimizer"]

# Of each: the class, its learning rate, its epsilon, and what its momentum is called.
OPTIMIZERS: dict[str, tuple[Any, float, float | None, str | None]] = {
    "adadelta": (torch.optim.Adadelta, 1.0, 1e-6, "rho"),
    "adagrad": (torch.optim.Adagrad, 0.01, 1e-6, None),
    "adam": (torch.optim.Adam, 1e-3, 1e-8, "betas"),
    "adamw": (torch.optim.AdamW, 1e-3, 1e-8, "betas"),
    "sgd": (torch.optim.SGD, 0.1, None, "momentum"),
}
MOMENTUM = {"rho": 0.95, "betas": 0.9, "momentum": 0.9}

SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda share: 1.0,
    "linear": lambda share: 1 - share,
    "cosine": lambda share: (1 + math.cos(math.pi * share)) / 2,
}


def learning_rate_at(schedule: str, update: int, updates: int) -> float:
    """What the learning rate is multiplied with at an update of so many: a function, so that nothing is to be kept.

    Example:
        >>> [learning_rate_at("linear", update, 4) for update in range(4)]
        [1.0, 0.75, 0.5, 0.25]
    """
    return SCHEDULES[schedule](min(update / max(updates, 1), 1.0))


def make_optimizer(
    parameters: Mapping[str, nn.Parameter],
    name: str,
    learning_rate: float | None = None,
    epsilon: float | None = None,
    momentum: float | None = None,
    weight_decay: float = 0.0,
) -> torch.optim.Optimizer:
    """An optimiser by name, fused where torch has that; biases (vectors named b or c) are not decayed."""
    kind, default_rate, default_epsilon, momentum_name = OPTIMIZERS[name]
    options: dict[str, Any] = {"lr": default_rate if learning_rate is None else learning_rate}
    if default_epsilon is not None:
        options["eps"] = default_epsilon if epsilon is None else epsilon
    elif epsilon is not None:
        raise ValueError(f"'epsilon' is nothing that {name} has; leave it out.")
    if momentum_name is not None:
        value = MOMENTUM[momentum_name] if momentum is None else momentum
        options[momentum_name] = (value, 0.999) if momentum_name == "betas" else value
    elif momentum is not None:
        raise ValueError(f"'momentum' is nothing that {name} has; leave it out.")
    options["foreach" if name == "adadelta" else "fused"] = True
    biases = [value for key, value in parameters.items() if key[0] in "bc"]
    matrices = [value for key, value in parameters.items() if key[0] not in "bc"]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": biases, "weight_decay": 0.0}]
    optimizer: torch.optim.Optimizer = kind(groups, **options)
    for group in optimizer.param_groups:
        group["initial_lr"] = group["lr"]
    return optimizer
