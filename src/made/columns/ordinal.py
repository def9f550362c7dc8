r"""Numbers of which there are few different ones: counts, grades, codes.

Each value that training saw has a logit of its own, as if it were a category, so that any shape can be learned. Unlike
categories, values are in an order, have a mean, and any other number has a probability, too (:mod:`unseen`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from made.columns.base import Column
from made.columns.unseen import Unseen

__all__ = ["Ordinal"]


@dataclass(frozen=True)
class Ordinal(Column):
    r"""A column of k different numbers, whose codes are 0, ..., k - 1.

    Other numbers have codes beside these, see :class:`made.columns.unseen.Unseen`.

    Input units are one-hot, and one more for the place in the order, whose growth is slowed far from the list: it is
    all that is known of a number that is not listed. Output units are the logits of a softmax.

    Arguments:
        values: the numbers, ascending.
        step: how far apart numbers are, those not listed, too; 0 for real numbers.
        share: the probability of all other numbers together; 0: they are not allowed.

    Example:
        >>> kind = Ordinal((0.0, 1.0, 2.0, 5.0), step=1.0)
        >>> kind.encode(torch.tensor([1.5, 4.0]))
        tensor([[0.0000, 0.0000, 0.0000, 0.0000, 0.0000],
                [0.0000, 0.0000, 0.0000, 0.0000, 1.5445]])
        >>> round(kind.beside.value(kind.mean(torch.zeros(4))).item(), 6)
        2.0
    """

    values: tuple[float, ...]
    step: float = 0.0
    share: float = 1e-6

    @cached_property
    def beside(self) -> Unseen:
        """The numbers that are not listed, and places among the codes for all."""
        return Unseen(self.values, self.step, self.share or 0.5)  # a share that no other number has is not used

    def __post_init__(self) -> None:
        self.beside  # noqa: B018  # checks both

    @property
    def inputs(self) -> int:
        return self.codes + 1

    @property
    def outputs(self) -> int:
        return self.codes

    @property
    def codes(self) -> int:
        return len(self.values)

    @property
    def allowed(self) -> str:
        return "a finite number" if self.share else f"a whole number from 0 to {self.codes - 1}"

    def valid(self, values: Tensor) -> Tensor:
        return values.isfinite() if self.share else self.beside.listed(values)

    def encode(self, values: Tensor) -> Tensor:
        places = torch.arange(self.codes, dtype=values.dtype, device=values.device)
        code = values.unsqueeze(-1)
        # Codes that are all as frequent have this standard deviation.
        spread = math.sqrt((self.codes**2 - 1) / 12) or 1.0
        order = ((code - (self.codes - 1) / 2) / spread).asinh()
        return torch.cat([(code == places).to(values.dtype), order], dim=-1)

    def log_prob(self, units: Tensor, values: Tensor) -> Tensor:
        listed = self.beside.listed(values)
        place = (values * listed).long().unsqueeze(-1)
        learned = units.log_softmax(dim=-1).gather(-1, place).squeeze(-1)
        return self.beside.combine(learned, listed, values) if self.share else learned

    def independent(self, values: Tensor) -> Tensor:
        counts = values.long().bincount(minlength=self.codes).to(values.dtype) + 1  # as if there were one more of each
        return (counts / counts.sum()).log()

    def draw(self, units: Tensor, noise: Tensor) -> Tensor:
        # The last is left out: it is 1 but for rounding, and is not to be missed.
        below = units.softmax(dim=-1).cumsum(dim=-1)[..., :-1]
        return (noise.unsqueeze(-1) >= below).sum(dim=-1).to(units.dtype)

    def mode(self, units: Tensor) -> Tensor:
        return units.argmax(dim=-1).to(units.dtype)

    def mean(self, units: Tensor) -> Tensor:
        """The place of the expected value among the codes."""
        values = torch.tensor(self.values, dtype=torch.float64, device=units.device)
        return self._place((units.double().softmax(dim=-1) * values).sum(dim=-1)).to(units.dtype)

    def average(self, weights: Tensor, values: Tensor) -> Tensor:
        return self._place((weights.double() * self.beside.value(values)).sum(dim=0)).to(values.dtype)

    def _place(self, values: Tensor) -> Tensor:
        return torch.from_numpy(np.asarray(self.beside.code(values.cpu().numpy()))).to(values.device)
