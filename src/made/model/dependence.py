r"""Pairwise mutual information of the columns of a model, in nats.

Of two columns, :math:`I(A; B) = E[\log p(b \mid a) - \log p(b)]`, the mean of both directions. The conditionals of all
columns given one come from a single pass (:func:`made.queries.marginals.marginals`). It is a sum for columns with
lists of values, and a mean over draws, with a standard error, where a number is involved. The report compares a table
with samples by another measure (:mod:`made.report.dependence`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.model.view import View
from made.queries.conditional import Prediction
from made.queries.random import uniform

SAMPLES = 2048


@dataclass(frozen=True)
class MutualInformation:
    """The mutual information of two columns.

    Attributes:
        nats: the estimate; below zero only by chance.
        standard_error: its standard error by sampling; 0 for a sum.
        disagreement: half the difference between the two directions. It is 0 for a model whose conditionals belong to
            one distribution; those of an any-order model do so only approximately.

    Example:
        >>> print(MutualInformation(0.2513, 0.0124))
        0.251 ± 0.024 nats
    """

    nats: float
    standard_error: float
    disagreement: float = 0.0

    def __float__(self) -> float:
        return self.nats

    def __str__(self) -> str:
        return f"{self.nats:.3f}{f' ± {1.96 * self.standard_error:.3f}' if self.standard_error else ''} nats"


@dataclass(frozen=True, eq=False)
class Association:
    """The mutual information of all pairs of columns.

    Attributes:
        columns: their names.
        nats: the mutual information, NaN on the diagonal. Shape: (columns, columns).
        standard_error, disagreement: of each, as in :class:`MutualInformation`.
    """

    columns: tuple[str, ...]
    nats: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    disagreement: NDArray[np.float64]

    @property
    def correlation(self) -> NDArray[np.float64]:
        r"""The same from 0 to 1: :math:`\sqrt{1 - e^{-2 I}}`; of normal distributions, the absolute correlation."""
        return np.asarray(np.sqrt(-np.expm1(-2 * np.maximum(self.nats, 0))))

    def strongest(self, count: int = 10) -> list[tuple[str, str, MutualInformation]]:
        """The pairs with the most mutual information."""
        first, second = np.triu_indices(len(self.columns), k=1)
        order = np.argsort(-self.nats[first, second], kind="stable")[:count]
        pairs = [(int(first[each]), int(second[each])) for each in order]
        return [(self.columns[i], self.columns[j], self.pair(i, j)) for i, j in pairs]

    def pair(self, first: int, second: int) -> MutualInformation:
        """The mutual information of two columns, by number."""
        figures = (self.nats, self.standard_error, self.disagreement)
        return MutualInformation(*(float(each[first, second]) for each in figures))


@torch.no_grad()
def association(view: View, columns: Sequence[int], samples: int, generator: torch.Generator) -> Association:
    """The mutual information of all pairs of some columns of a view, by number."""
    alone = view.marginals(np.full((1, len(view.kept)), np.nan))
    nats, error = (np.full((len(columns), len(columns)), np.nan) for _ in range(2))
    for i, a in enumerate(columns):
        given = _Given.of(view, a, alone[a], samples, generator)
        for j, b in enumerate(columns):
            if a != b:
                nats[i, j], error[i, j] = given.information(b, alone[b], generator)
    names = tuple(view.schema.names[d] for d in columns)
    return Association(names, (nats + nats.T) / 2, np.hypot(error, error.T) / 2, np.abs(nats - nats.T) / 2)


@dataclass(frozen=True)
class _Given:
    """The distributions of all columns given values of one.

    ``weights`` are the probabilities of the values, (values), if these are all there are; ``drawn`` are the values of
    draws, by number, (samples).
    """

    conditionals: dict[int, Prediction]
    weights: Tensor | None
    drawn: Tensor

    @classmethod
    def of(cls, view: View, column: int, alone: Prediction, samples: int, generator: torch.Generator) -> _Given:
        kind, many = alone.kind, _repeated(alone, samples)
        values = many.draw(_noise(samples, alone, generator))
        if kind.cardinality:
            weights = alone.probabilities(kind.cardinality)[0].double()
            codes, drawn = np.arange(kind.cardinality, dtype=np.float64), values.long()
        else:
            weights, codes, drawn = None, kind.outer(values).double().cpu().numpy(), torch.arange(samples)
        rows = np.full((len(codes), len(view.kept)), np.nan)
        rows[:, column] = codes
        return cls(view.marginals(rows), weights, drawn.to(values.device))

    def information(self, column: int, alone: Prediction, generator: torch.Generator) -> tuple[float, float]:
        """The mean of log p(b | a) - log p(b), and its standard error."""
        found = self.conditionals[column]
        if count := found.kind.cardinality:
            chances = found.probabilities(count).double()
            mean = alone.probabilities(count)[0].double() if self.weights is None else self.weights @ chances
            gain = (torch.xlogy(chances, chances) - torch.xlogy(chances, mean)).sum(dim=1)
            if self.weights is not None:
                return float(self.weights @ gain), 0.0
        else:
            each = found[self.drawn]
            values = each.draw(_noise(len(each), each, generator))
            gain = (each.log_prob(values) - _repeated(alone, len(each)).log_prob(values)).double()
        return float(gain.mean()), float(gain.std()) / math.sqrt(len(gain))


def _repeated(one: Prediction, rows: int) -> Prediction:
    return one[torch.zeros(rows, dtype=torch.long, device=one.weights.device)]


def _noise(rows: int, like: Prediction, generator: torch.Generator) -> Tensor:
    return uniform(rows, 2, like=like.units, generator=generator).t()
