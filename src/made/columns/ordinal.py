r"""Numbers with few distinct values: counts, grades, codes.

Each value that training has seen has its own logit, as a category would, so any shape can be learned. Unlike
categories, the values have an order and a mean, and other numbers have a probability too (:mod:`made.columns.unseen`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.columns.discrete import Softmax
from made.columns.form import Form, Target
from made.columns.settings import NUMERIC_SETTINGS, read_settings
from made.columns.unseen import Unseen


@dataclass(frozen=True)
class Ordinal(Softmax):
    r"""A column of k distinct numbers, coded as 0, ..., k - 1; see :class:`made.columns.unseen.Unseen` for all others.

    Input units are one-hot, and one more for the position in the order, which grows slowly beyond the list: it is all
    that is known of a number that is not listed. Output units are the logits of a softmax.

    Arguments:
        values: the numbers, ascending.
        step: the spacing of all numbers, listed or not; 0 for real numbers.
        share: the probability of all other numbers together; 0: they are not allowed.

    Example:
        >>> kind = Ordinal((0.0, 1.0, 2.0, 5.0), step=1.0)
        >>> kind.encode(torch.tensor([1.5, 4.0]))
        tensor([[0.0000, 0.0000, 0.0000, 0.0000, 0.0000],
                [0.0000, 0.0000, 0.0000, 0.0000, 1.5445]])
        >>> round(kind.beside.value(kind.mean(torch.zeros(4))).item(), 6)
        2.0
    """

    kind = "ordinal"
    quantitative = True

    values: tuple[float, ...]
    step: float = 0.0
    share: float = 1e-6

    @cached_property
    def beside(self) -> Unseen:
        """The distribution of the numbers that are not listed, and their codes."""
        return Unseen(self.values, self.step, self.share or 0.5)  # 0.5 is not used

    @property
    def unseen(self) -> Unseen | None:
        """The same, if other numbers are allowed."""
        return self.beside if self.share else None

    def __post_init__(self) -> None:
        self.beside  # noqa: B018  # checks both

    @property
    def inputs(self) -> int:
        return self.codes + 1

    @property
    def codes(self) -> int:
        return len(self.values)

    @property
    def allowed(self) -> str:
        return "a finite number" if self.share else f"a whole number from 0 to {self.codes - 1}"

    def to_json(self) -> dict[str, Any]:
        return NUMERIC_SETTINGS | {"step": self.step}

    @classmethod
    def from_json(
        cls, settings: Mapping[str, Any], values: tuple[Any, ...] = (), missing: bool = False, other: float = 0.0
    ) -> Ordinal:
        if missing:
            raise ValueError("'missing' should be false where the column is ordinal.")
        return cls(tuple(map(float, values)), read_settings(settings, {})["step"], other)

    def codes_of(self, numbers: NDArray[np.float64]) -> NDArray[np.float64] | None:
        return self.beside.code_on_grid(numbers) if self.share else None

    def numbers_of(self, codes: Tensor) -> Tensor:
        return self.beside.value(codes)

    def valid(self, values: Tensor) -> Tensor:
        return values.isfinite() if self.share else self.beside.listed(values)

    def encode(self, values: Tensor) -> Tensor:
        places = torch.arange(self.codes, dtype=values.dtype, device=values.device)
        code = values.unsqueeze(-1)
        # The standard deviation of equally frequent codes.
        spread = math.sqrt((self.codes**2 - 1) / 12) or 1.0
        order = ((code - (self.codes - 1) / 2) / spread).asinh()
        return torch.cat([(code == places).to(values.dtype), order], dim=-1)

    def log_prob(self, units: Tensor, values: Tensor) -> Tensor:
        listed = self.beside.listed(values)
        place = (values * listed).long().unsqueeze(-1)
        learned = units.log_softmax(dim=-1).gather(-1, place).squeeze(-1)
        return self.beside.combine(learned, listed, values) if self.share else learned

    @property
    def form(self) -> Form | None:
        return Form(self.codes) if self.codes > 1 else None

    def target(self, values: Tensor) -> Target:
        listed = self.beside.listed(values)
        if not self.share:
            return Target(values, torch.zeros_like(values), torch.full_like(values, -math.inf))
        return self.beside.target(values * listed, listed, values)

    def mean(self, units: Tensor) -> Tensor:
        """The code of the expected value."""
        values = torch.tensor(self.values, dtype=torch.float64, device=units.device)
        return self._place((units.double().softmax(dim=-1) * values).sum(dim=-1)).to(units.dtype)

    def average(self, weights: Tensor, values: Tensor) -> Tensor:
        return self._place((weights.double() * self.beside.value(values)).sum(dim=0)).to(values.dtype)

    def _place(self, values: Tensor) -> Tensor:
        return torch.from_numpy(np.asarray(self.beside.code(values.cpu().numpy()))).to(values.device)
