r"""What a column is: values to input units, and the likelihood that its output units describe.

A kind of column says how many input and output units one column has, and what they mean. The network knows nothing
else about it, so that a new kind is a new subclass of :class:`Column` and nothing more. All methods work on any number
of rows and of columns of one kind at once: values are ``(...)``, and units have one axis more, ``(..., units)``.

In a table, NaN means "not observed". Only :meth:`Columns.check` meets one: whoever calls the other methods has put an
allowed value (0 always is) in its place, and leaves the result out. A kind may work on values of its own, such as
standardised ones: :meth:`Columns.check` makes them, and :meth:`Columns.outer` makes them what they were.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["Column"]


class Column(ABC):
    """A kind of column."""

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
        """The values that are allowed, in words."""

    @property
    def codes(self) -> int:
        """How many values 0, 1, ... the column has, each with a probability; 0 for numbers, which have no list."""
        return 0

    @property
    def cardinality(self) -> int:
        """How many of :attr:`codes` stand for a value that can be shown: all but one for "any other value"."""
        return self.codes

    @abstractmethod
    def valid(self, values: Tensor) -> Tensor:
        """Whether each value is allowed; NaN is not. Shapes: (...) to (...)."""

    @abstractmethod
    def encode(self, values: Tensor) -> Tensor:
        """Values to input units. Shapes: (...) to (..., inputs)."""

    @abstractmethod
    def log_prob(self, units: Tensor, values: Tensor) -> Tensor:
        """The log-likelihood of values. Shapes: (..., outputs), (...) to (...)."""

    @abstractmethod
    def draw(self, units: Tensor, noise: Tensor) -> Tensor:
        """Values from random numbers. Shapes: (..., outputs), (...) to (...)."""

    @abstractmethod
    def mode(self, units: Tensor) -> Tensor:
        """The most likely values. Shapes: (..., outputs) to (...)."""

    def noise(self, uniform: Tensor) -> Tensor:
        """The random numbers that :meth:`draw` takes, from uniform ones. Shapes: (...) to (...)."""
        return uniform

    def mean(self, units: Tensor) -> Tensor:
        """The expected values; of a kind that has no mean, the most likely ones. Shapes: (..., outputs) to (...)."""
        return self.mode(units)

    def average(self, weights: Tensor, values: Tensor) -> Tensor:
        """Expected values under several masks, by their shares, as one. Shapes: (masks, ...), twice, to (...)."""
        return (weights * values).sum(dim=0)

    def height(self, units: Tensor, values: Tensor) -> Tensor:
        """What a mode is the highest of: the log-likelihood, made comparable. Shapes: as of :meth:`log_prob`."""
        return self.log_prob(units, values)

    def tempered(self, units: Tensor, temperature: float) -> Tensor:
        """Output units of a distribution that is sharper (below 1) or flatter (above). Shapes: (..., outputs)."""
        return units / temperature

    def initial(self) -> Tensor:
        """What the output units are before training, if the weights add nothing. Shape: (outputs)."""
        return torch.zeros(self.outputs)

    def independent(self, values: Tensor) -> Tensor:
        """What the output units are if these values depend on nothing. Shapes: (values) to (outputs)."""
        return self.initial()

    def inner(self, values: Tensor) -> Tensor:
        """Values of the table to those that all other methods, but for :meth:`valid`, work on."""
        return values

    def outer(self, values: Tensor) -> Tensor:
        """The inverse of :meth:`inner`."""
        return values

    @property
    def family(self) -> object:
        """Columns whose families are equal are worked on together."""
        return self

    @staticmethod
    def joint(kinds: Sequence[Column]) -> Column:
        """A kind that does the work of several columns of one family, the last axis of their values."""
        return kinds[0]
