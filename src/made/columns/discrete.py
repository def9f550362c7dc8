"""Column kinds with a list of values: binary and categorical."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from made.columns.base import Column
from made.columns.form import Form, Target
from made.columns.settings import NUMERIC_SETTINGS, read_settings
from made.columns.unseen import Unseen

LEAST_DEVIATION = 0.1  # of a standardized input
LEAST_INPUT = -3.0  # of a centered input, where nearly all values are 1


@dataclass(frozen=True)
class Binary(Column):
    r"""A column of zeros and ones: one input unit, and one output unit, the logit of :math:`\hat x_d`.

    Arguments:
        signed: code the input as -1 and +1; 0, the input of a masked or missing value, is then neither.
        share: the share of ones; the input is then standardized by it, with a standard deviation of at least 0.1, so
            that rare ones do not become large inputs.
        unseen: the distribution of all other numbers; their input is 0, as if missing. ``None``: they are not allowed.
        zero: the input of 0, at most 0, beside an input of 1 for 1; ``None`` for that of the other settings.

    Example:
        >>> Binary().log_prob(torch.zeros(2, 1), torch.tensor([0.0, 1.0])).exp()
        tensor([0.5000, 0.5000])
    """

    kind = "binary"

    signed: bool = False
    share: float | Tensor | None = None
    unseen: Unseen | None = None
    zero: float | Tensor | None = None

    inputs = 1
    outputs = 1
    codes = 2

    @property
    def allowed(self) -> str:
        return "0 or 1" if self.unseen is None else "a finite number"

    def __post_init__(self) -> None:
        if self.share is None:
            return
        if self.signed:
            raise ValueError("'signed' is for inputs that are not standardized by a 'share'.")
        if not isinstance(self.share, Tensor) and not 0 < self.share < 1:
            raise ValueError(f"'share' should be above 0 and below 1, not {self.share!r}.")

    def __repr__(self) -> str:
        coding = f"signed={self.signed}" if self.share is None else f"share={self.share}"
        coding = coding if self.zero is None else f"zero={self.zero}"
        return f"Binary({coding}{'' if self.unseen is None else f', unseen={self.unseen!r}'})"

    @property
    def family(self) -> object:
        if self.zero is not None:
            return Binary, "zero", self.unseen
        return self if self.share is None else (Binary, "standardized", self.unseen)

    @staticmethod
    def joint(kinds: Sequence[Column]) -> Column:
        first = cast(Binary, kinds[0])
        if first.zero is not None:
            return replace(first, zero=torch.tensor([cast(Binary, kind).zero for kind in kinds], dtype=torch.float64))
        if first.share is None:
            return first
        shares = [cast(Binary, kind).share for kind in kinds]
        return Binary(share=torch.tensor(shares, dtype=torch.float64), unseen=first.unseen)

    def with_signed_inputs(self, signed: bool) -> Binary:
        return replace(self, signed=signed and self.share is None and self.zero is None)

    def with_shares(self, codes: NDArray[np.float64], *, standardized: bool) -> Binary:
        ones, seen = np.nansum(codes) + 1, (~np.isnan(codes)).sum() + 2  # one 0 and one 1 added (rule of succession)
        share = float(ones / seen)
        if standardized:
            return replace(self, signed=False, share=share)
        return replace(self, signed=False, zero=max(-share / (1 - share), LEAST_INPUT))

    def in_group(self, size: int) -> Binary:
        """The same column, as one of several of which at most one is 1.

        All signed zeros together are then as large an input as the one: in a large group, they would otherwise outweigh
        it, though they only repeat what it says.
        """
        return replace(self, signed=False, zero=-1 / size) if self.signed and size > 1 else self

    def to_json(self) -> dict[str, Any]:
        step = 0.0 if self.unseen is None else self.unseen.step
        coding = {"share": self.share, "zero": self.zero}
        return NUMERIC_SETTINGS | {"step": step} | {key: value for key, value in coding.items() if value is not None}

    @classmethod
    def from_json(
        cls, settings: Mapping[str, Any], values: tuple[Any, ...] = (), missing: bool = False, other: float = 0.0
    ) -> Binary:
        found = read_settings(settings, {"share": None, "zero": None})
        share, zero = found["share"], found["zero"]
        if zero is not None and (share is not None or not LEAST_INPUT <= zero <= 0):
            raise ValueError(f"'zero' should be from {LEAST_INPUT} to 0, and stand without a 'share', not {zero!r}.")
        if len(values) != 2:
            raise ValueError(f"'values' should be two, not {len(values)}.")
        if missing:
            raise ValueError("'missing' should be false where the column is binary.")
        unseen = Unseen(tuple(map(float, values)), found["step"], other) if other else None
        return cls(signed=share is None and zero is None, share=share, unseen=unseen, zero=zero)

    def codes_of(self, numbers: NDArray[np.float64]) -> NDArray[np.float64] | None:
        return None if self.unseen is None else self.unseen.code_on_grid(numbers)

    def numbers_of(self, codes: Tensor) -> Tensor | None:
        return None if self.unseen is None else self.unseen.value(codes)

    def valid(self, values: Tensor) -> Tensor:
        return self._listed(values) if self.unseen is None else values.isfinite()

    def all_valid(self, values: Tensor) -> bool:
        if self.unseen is not None:
            return super().all_valid(values)
        return not torch.addcmul(values, values, values, value=-1).abs_().sum()

    def encode(self, values: Tensor) -> Tensor:
        if self.zero is not None:
            zero = torch.as_tensor(self.zero, dtype=values.dtype, device=values.device)
            units = zero + (1 - zero) * values
        elif self.share is None:
            units = 2 * values - 1 if self.signed else values
        else:
            share = torch.as_tensor(self.share, dtype=values.dtype, device=values.device)
            units = (values - share) / (share * (1 - share)).sqrt().clamp(min=LEAST_DEVIATION)
        if self.unseen is not None:
            units = units.masked_fill(~self._listed(values), 0)
        return units.unsqueeze(-1)

    def log_prob(self, units: Tensor, values: Tensor) -> Tensor:
        logit = units.squeeze(-1)
        if self.unseen is None:
            return F.binary_cross_entropy_with_logits(logit, values, reduction="none").neg_()
        listed = self._listed(values)
        learned = F.binary_cross_entropy_with_logits(logit, values * listed, reduction="none").neg_()
        return self.unseen.combine(learned, listed, values)

    form = Form(1)

    def target(self, values: Tensor) -> Target:
        if self.unseen is None:
            return Target(values, torch.zeros_like(values), torch.full_like(values, -math.inf))
        listed = self._listed(values)
        return self.unseen.target(values * listed, listed, values)

    def _listed(self, values: Tensor) -> Tensor:
        return values * (values - 1) == 0

    def independent(self, values: Tensor) -> Tensor:
        return ((values.sum() + 1) / (len(values) + 2)).logit().unsqueeze(0)  # one 0 and one 1 added

    def draw(self, units: Tensor, noise: Tensor) -> Tensor:
        return (units.squeeze(-1) > noise).to(units.dtype)

    def mode(self, units: Tensor) -> Tensor:
        return (units.squeeze(-1) > 0).to(units.dtype)

    def noise(self, uniform: Tensor) -> Tensor:
        return uniform.logit()


class Softmax(Column):
    """A kind with a list of values, whose output units are the logits of a softmax over its codes."""

    @property
    def outputs(self) -> int:
        return self.codes

    def independent(self, values: Tensor) -> Tensor:
        counts = values.long().bincount(minlength=self.codes).to(values.dtype) + 1  # one of each added
        return (counts / counts.sum()).log()

    def draw(self, units: Tensor, noise: Tensor) -> Tensor:
        # Without the last one, which rounding may put below 1.
        below = units[..., : self.cardinality].softmax(dim=-1).cumsum(dim=-1)[..., :-1]
        return (noise.unsqueeze(-1) >= below).sum(dim=-1).to(units.dtype)

    def mode(self, units: Tensor) -> Tensor:
        return units[..., : self.cardinality].argmax(dim=-1).to(units.dtype)


@dataclass(frozen=True)
class Categorical(Softmax):
    r"""A column of the values 0, ..., k - 1: k input units, one-hot, and k output units, the logits of a softmax.

    Arguments:
        k: the number of values.
        ordered: whether the values are in an order. There are then k - 1 more input units, "above the first", ...,
            "above the last but one", coded as -1 and +1, so that the order need not be learned.
        reserved: the least probability of the last value, which stands for all values that training has not seen. It
            is scored, but never drawn or predicted.

    Example:
        >>> Categorical(3).encode(torch.tensor([2.0, 0.0]))
        tensor([[0., 0., 1.],
                [1., 0., 0.]])
    """

    kind = "categorical"

    k: int
    ordered: bool = False
    reserved: float = 0.0

    def __post_init__(self) -> None:
        if int(self.k) != self.k or self.k < 1:
            raise ValueError(f"'k' should be a whole number, at least 1, not {self.k!r}.")
        if not 0 <= self.reserved < 1:
            raise ValueError(f"'reserved' should be at least 0 and below 1, not {self.reserved!r}.")

    def __repr__(self) -> str:
        more = ", ordered=True" * self.ordered + (f", reserved={self.reserved:g}" if self.reserved else "")
        return f"Categorical(k={self.k}{more})"

    @property
    def inputs(self) -> int:
        return 2 * self.k - 1 if self.ordered else self.k

    @property
    def codes(self) -> int:
        return self.k

    @property
    def cardinality(self) -> int:
        return self.k - (self.reserved > 0)

    @property
    def allowed(self) -> str:
        return f"a whole number from 0 to {self.k - 1}"

    def to_json(self) -> dict[str, Any]:
        return NUMERIC_SETTINGS | ({"ordered": True} if self.ordered else {})

    @classmethod
    def from_json(
        cls, settings: Mapping[str, Any], values: tuple[Any, ...] = (), missing: bool = False, other: float = 0.0
    ) -> Categorical:
        found = read_settings(settings, {"ordered": False})
        if not values:
            raise ValueError("'values' should be at least one.")
        return cls(len(values) + missing + (other > 0), found["ordered"], other)

    def valid(self, values: Tensor) -> Tensor:
        return (values >= 0) & (values < self.k) & (values == values.floor())

    def encode(self, values: Tensor) -> Tensor:
        categories = torch.arange(self.k, dtype=values.dtype, device=values.device)
        units = (values.unsqueeze(-1) == categories).to(values.dtype)
        if not self.ordered:
            return units
        return torch.cat([units, 2 * (values.unsqueeze(-1) >= categories[1:]).to(values.dtype) - 1], dim=-1)

    def log_prob(self, units: Tensor, values: Tensor) -> Tensor:
        return self._log_shares(units).gather(-1, values.long().unsqueeze(-1)).squeeze(-1)

    @property
    def form(self) -> Form | None:
        return Form(self.k) if self.k > 1 else None

    def target(self, values: Tensor) -> Target:
        floor = torch.full_like(values, -math.inf)
        if self.reserved:
            floor[values == self.k - 1] = math.log(self.reserved)
        return Target(values, torch.full_like(values, math.log1p(-self.reserved)), floor)

    def _log_shares(self, units: Tensor) -> Tensor:
        learned = units.log_softmax(dim=-1)
        if not self.reserved:
            return learned
        learned = learned + math.log1p(-self.reserved)
        last = learned[..., -1:]
        return torch.cat([learned[..., :-1], last.logaddexp(torch.full_like(last, math.log(self.reserved)))], dim=-1)
