"""The training configuration, the optimizers, and the learning rate schedules."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import is_not
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from made.errors import ParameterError
from made.hints import argument
from made.parameters import TRAINING

__all__ = ["OPEN_ENDED", "TrainingConfig", "learning_rate_at", "make_optimizer"]


class AdamW:
    """AdamW with one fused operation for each group of weights, and little else.

    It has the groups and the state of an optimizer of torch. That of torch itself takes longer to prepare a step of a
    small network than to make it, and imports a compiler, which takes up to a second.

    Arguments:
        groups: the ``params`` of each group, with options that differ from the following ones.
        lr: the learning rate.
        betas: the decays of the averages of gradients and of their squares.
        eps: added to the denominator.
    """

    def __init__(self, groups: Sequence[dict[str, Any]], *, lr: float, betas: tuple[float, float], eps: float) -> None:
        self.param_groups: list[dict[str, Any]] = [{"lr": lr, "betas": betas, "eps": eps} | group for group in groups]
        self.state: dict[Tensor, dict[str, Tensor]] = defaultdict(dict)
        self._kept: dict[int, tuple[list[nn.Parameter], list[list[Tensor]]]] = {}

    @torch.no_grad()
    def step(self) -> None:
        for number, group in enumerate(self.param_groups):
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if not weights:
                continue
            averages, squares, steps = self._states(number, weights)
            torch._foreach_add_(steps, 1)
            torch._fused_adamw_(
                weights,
                [weight.grad for weight in weights],
                averages,
                squares,
                [],
                steps,
                lr=group["lr"],
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                amsgrad=False,
                maximize=False,
            )

    def _states(self, number: int, weights: list[nn.Parameter]) -> list[list[Tensor]]:
        """The states of the weights of a group, as lists that are kept until other weights have gradients."""
        kept, lists = self._kept.get(number, ([], []))
        if (
            len(kept) != len(weights)
            or any(map(is_not, kept, weights))
            or self.state[kept[0]]["step"] is not lists[2][0]
        ):
            for weight in weights:
                if not self.state[weight]:
                    zeros = {name: torch.zeros_like(weight) for name in ("exp_avg", "exp_avg_sq")}
                    self.state[weight].update({"step": torch.zeros((), device=weight.device)} | zeros)
            lists = [[self.state[weight][name] for weight in weights] for name in ("exp_avg", "exp_avg_sq", "step")]
            self._kept[number] = weights, lists
        return lists


Optimizer: TypeAlias = torch.optim.Optimizer | AdamW

# Class, default learning rate, default epsilon, name of the momentum argument, and numbers of state for each weight.
OPTIMIZERS: dict[str, tuple[Any, float, float | None, str | None, int]] = {
    "adadelta": (torch.optim.Adadelta, 1.0, 1e-6, "rho", 2),
    "adagrad": (torch.optim.Adagrad, 0.01, 1e-6, None, 1),
    "adam": (torch.optim.Adam, 4e-3, 1e-8, "betas", 2),
    "adamw": (AdamW, 4e-3, 1e-8, "betas", 2),
    "sgd": (torch.optim.SGD, 0.1, None, "momentum", 1),
}
NO_EPSILON = 1e-30  # above zero, for weights whose sum of squares is zero in a state that began without epsilon
MOMENTUM = {"rho": 0.95, "betas": 0.9, "momentum": 0.9}

# Factors of the learning rate, given the completed share of the run and the number of epochs. A run with a schedule of
# epochs only can be resumed for longer.
SCHEDULES: dict[str, Callable[[float, float], float]] = {
    "constant": lambda share, epochs: 1.0,
    "falling": lambda share, epochs: 1 / (1 + (epochs / 30) ** 2),
    "linear": lambda share, epochs: 1 - share,
    "cosine": lambda share, epochs: (1 + math.cos(math.pi * share)) / 2,
}
OPEN_ENDED = ("constant", "falling")


@dataclass(frozen=True)
class TrainingConfig:
    """The training configuration.

    Arguments:
        optimizer: adadelta, adagrad, adam, adamw or sgd.
        learning_rate: default: that of the optimizer.
        schedule: of the learning rate: ``"constant"``; ``"falling"``, to a half after 30 epochs and a tenth after 90;
            or ``"linear"`` or ``"cosine"`` decay to zero at ``max_epochs``.
        epsilon: added to the optimizer's denominator, or below its root (Adadelta, Adagrad); default: 1e-6 for Adadelta
            and Adagrad, 1e-8 for Adam(W).
        momentum: of SGD; the decay of Adadelta's averages, or beta_1 of Adam(W).
        weight_decay: of the weights; biases are not decayed.
        adaptive_decay: less decay where columns follow from others (:mod:`made.training.decay`); for AdamW, any-order
            models with a segment for each column, and if there are validation rows.
        clip: the maximum norm of the gradient.
        average: the decay of an exponential moving average of the weights, which is validated and kept.
        batch_size: rows in an update.
        max_epochs: the maximum number of passes over the rows.
        max_seconds: the maximum training time, checked after each epoch; a decaying schedule ends with it.
        patience: early stopping: the number of epochs without improvement after which training ends.
        mask_for: whether to draw a mask for each ``"update"``, or for each ``"row"``, as the paper also considers: one
            pass for each distinct mask, which is slow. Updates with questions or whole rows have one mask.
        questions: the share of an any-order model's updates, other than those for whole rows, in which rows have random
            missing and given columns, as queries do. Not used if there is a segment for each column.
        segments: the number of segments of an ordering in an any-order model's queries (see :func:`made.log_prob`).
            With more than one, an update shows a random part of each row, and predicts all the rest.
        whole_rows: the share of an any-order model's updates that predict whole rows in one pass under one of the
            ``evaluation_masks``, which then also score whole rows, whatever the segments. The first of these masks has
            the natural ordering if ``ordering`` says so.
        incomplete_rows: the share of the rows in these updates of which random entries are hidden, so that the same
            masks also score rows with missing values.
        nearly_complete: the share of the rows in all other updates of which all but one to three entries are given, if
            orderings are cut into segments; such questions are asked most often. Rows then weigh less, the fewer
            entries they ask for.
        pairs: the weight of the questions with one given column, or none, whose answers are counted in the training
            rows (:mod:`made.training.pairs`), in the same updates.
        number_weight: the weight of columns of numbers in the loss, where there are others, too. The likelihood of
            numbers would otherwise decide what hidden units learn, and how soon the other columns overfit.
        validation_masks: masks averaged after each epoch, of an unlimited model or of a longer list.
        evaluation_masks: masks that an unlimited model averages at the end to choose among its best epochs; a list is
            averaged in full.
        seed: seed of the order of rows, of questions and of dropout.
    """

    optimizer: str = "adamw"
    learning_rate: float | None = None
    schedule: str = "constant"
    epsilon: float | None = None
    momentum: float | None = None
    weight_decay: float = 0.0
    adaptive_decay: bool = False
    clip: float | None = None
    average: float | None = None
    batch_size: int = 100
    max_epochs: int = 500
    max_seconds: float | None = None
    patience: int = 30
    mask_for: Literal["update", "row"] = "update"
    questions: float = 0.5
    segments: int = 1
    whole_rows: float = 0.0
    incomplete_rows: float = 0.0
    nearly_complete: float = 0.0
    pairs: float = 0.0
    number_weight: float = 1.0
    validation_masks: int = 4
    evaluation_masks: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        for name, parameter in TRAINING.items():
            if name in self.__dataclass_fields__:
                if parameter.bounds is not None:  # numbers only: "auto" is for the estimator
                    parameter = parameter._replace(kind="int" if parameter.whole else "float")
                if problem := parameter.problem(getattr(self, name)):
                    raise ParameterError(f"{argument(name)} {problem}", argument=name)
        if isinstance(self.seed, bool) or not isinstance(self.seed, (int, np.integer)) or self.seed < 0:
            raise ParameterError(f"'seed' should be a whole number at least 0, not {self.seed!r}.", argument="seed")

    def count_updates(self, rows: int) -> int:
        """The maximum number of updates of a run on so many training rows."""
        return self.max_epochs * math.ceil(rows / self.batch_size)


def learning_rate_at(schedule: str, share: float, epochs: float) -> float:
    """The factor of the learning rate after a share of the run, and after so many epochs.

    Example:
        >>> [learning_rate_at("linear", share, 0.0) for share in (0.0, 0.25, 0.5, 0.75)]
        [1.0, 0.75, 0.5, 0.25]
        >>> [learning_rate_at("falling", 0.0, epochs) for epochs in (0, 30, 90)]
        [1.0, 0.5, 0.1]
    """
    return SCHEDULES[schedule](min(share, 1.0), epochs)


def make_optimizer(
    parameters: Mapping[str, nn.Parameter],
    name: str,
    learning_rate: float | None = None,
    epsilon: float | None = None,
    momentum: float | None = None,
    weight_decay: float = 0.0,
    slower: Mapping[str, float] = MappingProxyType({}),
) -> Optimizer:
    """An optimizer by name, fused where possible; biases (names that start with b or c) are not decayed.

    Adam and AdamW, whose steps do not scale with the gradient, divide the learning rate of the parameters in ``slower``
    by the given factors; the other optimizers ignore it.
    """
    kind, default_rate, default_epsilon, momentum_name, _ = OPTIMIZERS[name]
    options: dict[str, Any] = {"lr": default_rate if learning_rate is None else learning_rate}
    if default_epsilon is not None:
        options["eps"] = default_epsilon if epsilon is None else epsilon
    elif epsilon is not None:
        raise ParameterError(f"'epsilon' is not supported by optimizer={name!r}.", argument="epsilon")
    if name == "adagrad":  # as in the paper's code: below the root, where the sum of squares starts at it
        options |= {"initial_accumulator_value": options["eps"], "eps": NO_EPSILON}
    if momentum_name is not None:
        value = MOMENTUM[momentum_name] if momentum is None else momentum
        options[momentum_name] = (value, 0.999) if momentum_name == "betas" else value
    elif momentum is not None:
        raise ParameterError(f"'momentum' is not supported by optimizer={name!r}.", argument="momentum")
    if kind is not AdamW:
        options["foreach" if name == "adadelta" else "fused"] = True
    slower = slower if kind in (torch.optim.Adam, AdamW) else {}
    biases = [value for key, value in parameters.items() if key[0] in "bc"]
    matrices = [value for key, value in parameters.items() if key[0] not in "bc" and key not in slower]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": biases, "weight_decay": 0.0}]
    for key, times in slower.items():
        groups.append({"params": [parameters[key]], "weight_decay": weight_decay, "lr": options["lr"] / times})
    optimizer: Optimizer = kind(groups, **options)
    for group in optimizer.param_groups:
        group["initial_lr"] = group["lr"]
    return optimizer
