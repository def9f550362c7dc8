r"""Numbers that training has not seen, in a column with a list of values.

The codes of listed values are 0, 1, ..., k - 1. Any other number has a code between two of them if it lies between two
listed values, and below 0 or above k - 1 if it lies beyond them. A small share r of the distribution, which is not
learned, is spread over these numbers, so that each has a probability and the total is one:

.. math:: p(x) = (1 - r)\, \hat p(x) \text{ if } x \text{ is listed}, \qquad p(x) = r\, T(x) \text{ if not,}

with a Cauchy distribution T around the middle of the listed values, discrete if values have a step, else a density. It
is never drawn from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.columns.form import Target


@dataclass(frozen=True)
class Unseen:
    """The distribution of numbers that are not listed.

    Arguments:
        values: the listed numbers, ascending.
        step: the spacing of all numbers, listed or not; 0 for real numbers.
        share: r, the probability of all numbers that are not listed.

    Example:
        >>> beside = Unseen((0.0, 1.0, 2.0, 5.0), step=1.0)
        >>> beside.code(np.array([2.0, 3.5, 5.0, 10.0])).tolist()
        [2.0, 2.5, 3.0, 6.0]
        >>> beside.value(torch.tensor([2.5, 6.0])).tolist()
        [3.5, 10.0]
        >>> numbers = torch.from_numpy(beside.code(np.arange(-99_999.0, 100_000.0)))
        >>> probability = beside.combine(torch.tensor(0.25).log(), beside.listed(numbers), numbers).exp()
        >>> round(probability.sum().item(), 6)
        1.0
    """

    values: tuple[float, ...]
    step: float = 0.0
    share: float = 1e-6

    def __post_init__(self) -> None:
        if not self.values or list(self.values) != sorted(set(self.values)) or not all(map(math.isfinite, self.values)):
            raise ValueError(f"'values' should be finite numbers, ascending, at least one, not {self.values!r}.")
        if not (math.isfinite(self.step) and self.step >= 0):
            raise ValueError(f"'step' should be a finite number, at least 0, not {self.step!r}.")
        if not 0 < self.share < 1:
            raise ValueError(f"'share' should be above 0 and below 1, not {self.share!r}.")

    @cached_property
    def gap(self) -> float:
        """The difference in value between codes beyond the listed values."""
        first, last = self.values[0], self.values[-1]
        gap = max((last - first) / max(len(self.values) - 1, 1), self.step)
        return gap if math.isfinite(gap) and gap > 0 else max(abs(first), 1.0)

    def code(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers as codes; NaN stays NaN. Shapes: (...) to (...)."""
        listed = np.array(self.values)
        inside = np.interp(values, listed, np.arange(len(listed), dtype=np.float64))
        with np.errstate(over="ignore", invalid="ignore"):
            above = len(listed) - 1 + (values - listed[-1]) / self.gap
            below = (values - listed[0]) / self.gap
        codes = np.where(values > listed[-1], above, np.where(values < listed[0], below, inside))
        return np.where(np.isfinite(values), np.clip(codes, -1e15, 1e15), np.nan)

    def code_on_grid(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The codes of numbers that are first rounded to the step, if there is one. Shapes: (...) to (...)."""
        return self.code(np.rint(values / self.step) * self.step if self.step else values)

    def value(self, codes: Tensor) -> Tensor:
        """The inverse of :meth:`code`, in double precision. Shapes: (...) to (...)."""
        listed = torch.tensor(self.values, dtype=torch.float64, device=codes.device)
        double, last = codes.double(), len(self.values) - 1
        low = double.floor().clamp(0, max(last - 1, 0)).nan_to_num(0).long()
        begin, end = listed[low], listed[(low + 1).clamp(max=last)]
        inside = begin + (double - low) * (end - begin)
        beyond = torch.where(double < 0, listed[0] + double * self.gap, listed[-1] + (double - last) * self.gap)
        return torch.where((double < 0) | (double > last), beyond, inside)

    def listed(self, codes: Tensor) -> Tensor:
        """Whether each code is one of 0, ..., k - 1. Shapes: (...) to (...)."""
        return (codes >= 0) & (codes < len(self.values)) & (codes == codes.floor())

    def combine(self, learned: Tensor, listed: Tensor, codes: Tensor) -> Tensor:
        """The log-likelihood, from the learned one of the listed values. Shapes: (...), three times, to (...)."""
        log_p = learned + math.log1p(-self.share)
        if bool(listed.all()):
            return log_p
        return torch.where(listed, log_p, (self._log_tail(self.value(codes)) - self.log_rest).to(log_p.dtype))

    def target(self, choice: Tensor, listed: Tensor, codes: Tensor) -> Target:
        """The terms that depend on codes alone, see :mod:`made.columns.form`. Shapes: (...), three times, to (...)."""
        nothing = torch.full_like(codes, -math.inf)
        log_choice = torch.where(listed, math.log1p(-self.share), nothing)
        if bool(listed.all()):
            return Target(choice, log_choice, nothing)
        log_p = (self._log_tail(self.value(codes)) - self.log_rest).to(codes.dtype)
        return Target(choice, log_choice, torch.where(listed, nothing, log_p))

    def _log_tail(self, values: Tensor) -> Tensor:
        """log r T, in double precision."""
        middle = self.values[0] / 2 + self.values[-1] / 2
        width = max(self.values[-1] / 2 - self.values[0] / 2, self.gap)
        place = (values - middle) / width
        if not self.step:
            return math.log(self.share) - math.log(math.pi * width) - torch.log1p(place.square())
        half = self.step / (2 * width)  # at most 1/2, so that one arctangent is the difference of two
        return (
            math.log(self.share / math.pi) + torch.atan2(2 * place.new_tensor(half), 1 + place.square() - half**2).log()
        )

    @cached_property
    def log_rest(self) -> float:
        """The log probability under T of all numbers that are not listed."""
        if not self.step:
            return 0.0
        tail = self._log_tail(torch.tensor(self.values, dtype=torch.float64)) - math.log(self.share)
        return math.log1p(-tail.exp().sum().item())
