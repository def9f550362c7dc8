r"""The interface of a column kind: values to input units, and the distribution that its output units describe.

The network knows only how many input and output units a column has. Everything else that depends on the kind is a
method of :class:`Column`, so a new kind is one subclass and one call of :func:`made.columns.registry.register`
(``docs/columns.md`` has a complete example). All methods are vectorized over rows and over columns of one kind: values
have the shape ``(...)`` and units one axis more, ``(..., units)``.

A kind may transform values for its own use, for example standardize them: :meth:`Column.inner` does so and
:meth:`Column.outer` undoes it. *Values of the table* are those before :meth:`Column.inner`. NaN marks a missing value;
only :meth:`Columns.check` sees it. All other methods get an allowed value (0 always is) in its place, and the caller
discards the result.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.columns.bins import Bars, Histogram, bars, histogram
from made.columns.form import Form, Target
from made.errors import QuestionError

Bound: TypeAlias = float | Tensor

# The place of "missing" on the axis of numbers, where missingness is modelled: after all others.
MISSING = sys.float_info.max

# Limits of the default inversion of a CDF: how far out a quantile may lie, and the bits of a double.
MOST_DOUBLINGS, MOST_HALVINGS = 200, 300

# Summaries: the default levels of quantiles; the levels at which means are winsorized; and the least level of a
# quantile, since there are no data in the far tails.
LEVELS = (0.05, 0.5, 0.95)
TAILS = (0.005, 0.995)
POINTS = 1024
LEAST_LEVEL = 0.5 / POINTS


@dataclasses.dataclass(frozen=True)
class Summary:
    """The moments and quantiles of a column of numbers in each row, in the units of the table.

    Attributes:
        mean: (rows).
        standard_deviation: (rows).
        quantiles: (levels, rows).
    """

    mean: Tensor
    standard_deviation: Tensor
    quantiles: Tensor


class Column(ABC):
    """A kind of column.

    A subclass sets :attr:`kind`, and implements ``inputs``, ``outputs``, ``allowed``, ``valid``, ``encode``,
    ``log_prob`` and ``mode``. Kinds with a list of values set ``codes``; all others implement :meth:`cdf`, or
    ``log_interval``, ``draw_interval`` and ``draw``.
    """

    kind: ClassVar[str]
    """The name of the kind in config.json and in ``columns=``."""

    @property
    @abstractmethod
    def inputs(self) -> int:
        """The number of input units."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """The number of output units."""

    @property
    @abstractmethod
    def allowed(self) -> str:
        """The allowed values, in words, for error messages."""

    @property
    def log_widths(self) -> range:
        """The output units that are logarithms of widths, which calibration adjusts. Default: none."""
        return range(0)

    @property
    def codes(self) -> int:
        """The number of values 0, 1, ... of a kind with a list of values; 0 for a kind without one."""
        return 0

    @property
    def cardinality(self) -> int:
        """The number of :attr:`codes` that can be predicted: all but one reserved for "any other value"."""
        return self.codes

    @property
    def listed(self) -> bool:
        """Whether the column has a list of values, coded 0, 1, ..."""
        return self.codes > 0

    @property
    def quantitative(self) -> bool:
        """Whether values are numbers, with an order, a mean and quantiles. Default: kinds without a list of values."""
        return not self.listed

    @property
    def ordered(self) -> bool:
        """Whether the codes have an order."""
        return self.quantitative

    @property
    def support(self) -> tuple[float, float]:
        """The interval [low, high) of all values of the table; a value on a grid owns half a spacing on each side."""
        return (-0.5, self.codes - 0.5) if self.listed else (-math.inf, math.inf)

    @property
    def grid(self) -> tuple[float, float]:
        """The origin and the spacing of the values of the table; a spacing of 0 for real numbers."""
        return 0.0, float(self.listed)

    @property
    def atoms(self) -> tuple[float, ...]:
        """The values that have a probability in a column that otherwise has a density; infinity for "missing"."""
        return ()

    @abstractmethod
    def valid(self, values: Tensor) -> Tensor:
        """Whether each value is allowed; NaN is not. Shapes: (...) to (...)."""

    def all_valid(self, values: Tensor) -> bool:
        """Whether all values are allowed; a kind may know a faster way."""
        return bool(self.valid(values).all())

    @abstractmethod
    def encode(self, values: Tensor) -> Tensor:
        """Values to input units. Shapes: (...) to (..., inputs)."""

    @abstractmethod
    def log_prob(self, units: Tensor, values: Tensor) -> Tensor:
        """The log-likelihood of values. Shapes: (..., outputs), (...) to (...)."""

    @property
    def form(self) -> Form | None:
        """The common form of the likelihood, for speed; ``None`` (the default): ``log_prob`` is called."""
        return None

    def target(self, values: Tensor) -> Target:
        """What values ask of the output units, for a kind that has a :attr:`form`. Shapes: (rows) to (rows)."""
        raise NotImplementedError(f"{type(self).__name__} has no 'form'.")

    @abstractmethod
    def mode(self, units: Tensor) -> Tensor:
        """The most likely values. Shapes: (..., outputs) to (...)."""

    def mean(self, units: Tensor) -> Tensor:
        """The expected values; the mode, if the kind is not quantitative. Shapes: (..., outputs) to (...)."""
        return self.mode(units)

    def cdf(self, units: Tensor, values: Tensor) -> Tensor:
        """P(X <= value), for values of the table within the support. Shapes: (..., outputs), (...) to (...)."""
        if not self.listed:
            raise QuestionError(
                f"columns of the kind {self.kind!r} have no distribution function, as samples, intervals and quantiles "
                f"need it: {type(self).__name__} should implement 'cdf'."
            )
        return self.log_interval(units, -0.5, values + 0.5).exp()

    def log_interval(self, units: Tensor, low: Bound, high: Bound) -> Tensor:
        """The log probability of the values of the table from ``low`` up to, but excluding, ``high``.

        On a grid, both lie halfway between two values. Tensors must broadcast with the result. The default is the sum
        over the listed values, or a difference of :meth:`cdf` in double precision, which loses digits in the tails.
        Shapes: (..., outputs) to (...).
        """
        if not self.listed:
            return (self._below(units, high) - self._below(units, low)).clamp(min=0).log()
        low, high = (torch.as_tensor(bound, device=units.device).unsqueeze(-1) for bound in (low, high))
        codes = torch.arange(self.codes, dtype=units.dtype, device=units.device)
        log_p = torch.stack([self.log_prob(units, code.expand(units.shape[:-1])) for code in codes], dim=-1)
        return log_p.where((low <= codes) & (codes < high), -math.inf).logsumexp(dim=-1)

    def draw_interval(self, units: Tensor, low: Bound, high: Bound, uniform: Tensor) -> Tensor:
        """A draw from the distribution truncated to [low, high), by inverting :meth:`cdf` at uniform random numbers.

        The result is transformed by :meth:`inner`. Shapes: (..., outputs), (...) to (...).
        """
        units = units.double()
        low, high = (torch.as_tensor(bound, dtype=torch.float64, device=units.device) for bound in (low, high))
        least, most = self.support
        low, high = low.clamp(min=least), high.clamp(max=most)
        first, last = self._below(units, low), self._below(units, high)
        return self.inner(self._inverse(units, first + uniform.double() * (last - first), low, high)).to(uniform.dtype)

    def quantile(self, units: Tensor, level: Tensor) -> Tensor:
        """The least value that P(X <= value) reaches ``level`` at. Shapes: (..., outputs), (...) to (...)."""
        return Column.draw_interval(self, units, *self.support, level).to(units.dtype)

    def summary(self, log_weights: Tensor, units: Tensor, levels: Sequence[float]) -> Summary:
        """Mean, standard deviation and quantiles of a mixture over masks, among values that are not missing.

        A quantile is a value that the column can have; its level is at least :data:`LEAST_LEVEL` from 0 and 1. The
        moments are winsorized at :data:`TAILS`. The default takes them from a grid of draws, 1024 in all.

        Arguments:
            log_weights: the log probability of each mask, (masks, rows).
            units: the output units under each mask, (masks, rows, outputs).
            levels: of the quantiles.
        """
        masks, rows = log_weights.shape
        each, units = -(-POINTS // masks), units.double()
        places = torch.arange(each, dtype=units.dtype, device=units.device)
        # Each mask contributes as many evenly spaced quantiles, interleaved with those of the other masks.
        noise = [self.noise((places + (index + 0.5) / masks) / each).unsqueeze(1) for index in range(masks)]
        drawn = [
            self.draw(of.expand(each, *of.shape), at.expand(each, rows)) for of, at in zip(units, noise, strict=True)
        ]
        values, order = self.outer(torch.cat(drawn)).double().sort(dim=0)  # (points, rows)
        shares = log_weights.double().exp().repeat_interleave(each, dim=0).gather(0, order) * values.isfinite()
        shares, values = shares / shares.sum(dim=0), values.nan_to_num(posinf=0)
        below = shares.cumsum(dim=0)
        ends = [(below < level - 1e-9).sum(dim=0).clamp(max=len(values) - 1) for level in (*levels, *TAILS)]
        quantiles = values.gather(0, torch.stack(ends)).where(~below[-1].isnan(), torch.nan)
        values = values.clamp(quantiles[-2], quantiles[-1])
        mean = (shares * values).sum(dim=0)
        deviation = (shares * (values - mean) ** 2).sum(dim=0).sqrt()
        return Summary(mean, deviation, quantiles[: len(levels)])

    def quantiles(self, log_weights: Tensor, units: Tensor, levels: Sequence[float]) -> Tensor:
        """The quantiles of :meth:`summary` alone. Shape: (levels, rows)."""
        return self.summary(log_weights, units, levels).quantiles

    def draw(self, units: Tensor, noise: Tensor) -> Tensor:
        """Values from random numbers. Default: :meth:`quantile`. Shapes: (..., outputs), (...) to (...)."""
        return self.quantile(units, noise)

    def noise(self, uniform: Tensor) -> Tensor:
        """The random numbers that :meth:`draw` takes, from uniform ones. Shapes: (...) to (...)."""
        return uniform

    def average(self, weights: Tensor, values: Tensor) -> Tensor:
        """The mean over masks of expected values. Shapes: (masks, ...), twice, to (...)."""
        return (weights * values).sum(dim=0)

    def height(self, units: Tensor, values: Tensor) -> Tensor:
        """What the mode maximizes: the log-likelihood, made comparable between points and densities."""
        return self.log_prob(units, values)

    def tempered(self, units: Tensor, temperature: float) -> Tensor:
        """The units of a sharper (temperature below 1) or flatter distribution. Default: scaled logits.

        Shapes: (..., outputs) to (..., outputs).
        """
        if not self.listed:
            raise QuestionError(f"columns of the kind {self.kind!r} have no temperature: sample with temperature 1.")
        return units / temperature

    def initial(self) -> Tensor:
        """The output units before training, if the weights add nothing. Shape: (outputs)."""
        return torch.zeros(self.outputs)

    def independent(self, values: Tensor) -> Tensor:
        """The output units that fit these values, if they depend on nothing. Shapes: (values) to (outputs)."""
        return self.initial()

    def inner(self, values: Tensor) -> Tensor:
        """Values of the table to those that ``encode``, ``log_prob``, ``draw``, ``mode`` and ``mean`` work on."""
        return values

    def outer(self, values: Tensor) -> Tensor:
        """The inverse of :meth:`inner`."""
        return values

    @property
    def family(self) -> object:
        """Columns whose families are equal are evaluated together."""
        return self

    @staticmethod
    def joint(kinds: Sequence[Column]) -> Column:
        """One kind that evaluates several columns of one family, along the last axis of their values."""
        return kinds[0]

    def fitted(self, values: NDArray[np.float64]) -> Column:
        """This kind, with constants (such as a scale) taken from the observed values of the training rows."""
        return self

    def with_signed_inputs(self, signed: bool) -> Column:
        """This kind, with binary inputs coded as -1 and +1, or as 0 and 1. Default: no change."""
        return self

    def with_shares(self, codes: NDArray[np.float64], *, standardized: bool) -> Column:
        """This kind, with binary inputs coded by the share of ones among these codes. Default: no change.

        Inputs have a mean of 0, and a standard deviation of 1 (``standardized``) or an input of 1 for ones.
        """
        return self

    def with_cuts(self, cuts: Sequence[float]) -> Column:
        """This kind with input units that say on which side of each cut a value lies. Default: no change."""
        return self

    def codes_of(self, numbers: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Codes for numbers that are not listed; None if they are refused (default). Shapes: (...) to (...)."""
        return None

    def numbers_of(self, codes: Tensor) -> Tensor | None:
        """The numbers of codes between and beyond the list; ``None`` if there are no such codes (default)."""
        return None

    def describe(self, show: Callable[[float], str], unit: str = "") -> str:
        """The settings in a few words; ``show`` formats a value of the table, and a difference has the unit."""
        return self.allowed

    def bins(
        self, real: NDArray[np.float64], sampled: NDArray[np.float64], labels: tuple[Any, ...] | None = None
    ) -> Histogram | Bars:
        """What a report draws: the shares of values in rows and in samples, without missing values.

        With ``labels``, values are codes. Default: bars of listed values, otherwise a histogram.
        """
        if labels is None:
            return histogram(real, sampled)
        rows, draws = (np.bincount(each.astype(np.intp), minlength=len(labels)) for each in (real, sampled))
        return bars(labels, rows, draws)

    def to_json(self) -> dict[str, Any]:
        """The settings of the kind for config.json. Default: the fields of a dataclass."""
        return dataclasses.asdict(self) if dataclasses.is_dataclass(self) else {}

    @classmethod
    def from_json(
        cls, settings: Mapping[str, Any], values: tuple[Any, ...] = (), missing: bool = False, other: float = 0.0
    ) -> Column:
        """The inverse of :meth:`to_json`.

        Arguments:
            settings: what :meth:`to_json` returned.
            values: the list of values, if there is one.
            missing: whether "missing" is a value of its own.
            other: the probability reserved for values that training has not seen.
        """
        return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()})

    def _below(self, units: Tensor, bound: Bound) -> Tensor:
        """P(X < bound), in double precision. Shapes: (..., outputs), (...) to (...)."""
        units, (least, most) = units.double(), self.support
        bound = torch.as_tensor(bound, dtype=torch.float64, device=units.device)
        bound = bound.expand(torch.broadcast_shapes(bound.shape, units.shape[:-1]))
        inside = (bound > least) & (bound < most)
        found = self.cdf(units, (bound - self.grid[1] / 2).where(inside, 0.0))
        return found.where(inside, (bound >= most).to(found.dtype))

    def _inverse(self, units: Tensor, target: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """The least value in [low, high) at which :meth:`cdf` reaches ``target``, by bisection."""
        origin, spacing = self.grid

        def reached(place: Tensor) -> Tensor:
            return self._below(units, origin + (place + 0.5) * spacing if spacing else place) >= target

        # Places are numbers on the grid, or the values themselves. Below the answer, the target is not reached.
        if spacing:
            low, high = (((bound - origin) / spacing - 0.5).round() for bound in (low, high))
        low, high = (bound.expand(target.shape) for bound in (low, high))
        width = torch.ones_like(target)
        above = high.where(high.isfinite(), low.nan_to_num(neginf=0.0) + width)
        below = low.where(low.isfinite(), above - width)
        for _ in range(MOST_DOUBLINGS):
            short, long = high.isinf() & ~reached(above), low.isinf() & reached(below)
            if not (short | long).any():
                break
            width = width * 2
            above, below = above.where(~short, above + width), below.where(~long, below - width)
        for _ in range(MOST_HALVINGS):
            middle = ((below + above) / 2).floor() if spacing else (below + above) / 2
            if not ((middle > below) & (middle < above)).any():
                break
            hit = reached(middle)
            below, above = below.where(hit, middle), above.where(~hit, middle)
        return origin + above * spacing if spacing else above
