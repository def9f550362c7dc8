r"""A model of missingness: which values of a row are missing, given the values.

Columns with missing values are decided one after the other. Whether the value of column d is missing, :math:`h_d = 1`,
is drawn from

.. math:: P(h_d = 1 \mid x, h_{<d}) = \sigma\Bigl(b_d + \sum_k w_{dk} f_k(x, h_{<d})\Bigr),

where the features f are the input units of the other columns, 0 for a value that is missing already, and the flags
:math:`h_{<d}` of the columns decided before. What is learned from a table (:mod:`made.training.missingness`) is thus
the dependence of missing values on values that are visible, and on each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.columns.group import Columns
from made.errors import QuestionError
from made.hints import argument
from made.network.masked import Network
from made.queries.batches import blocks, in_blocks
from made.queries.ensemble import Ensemble
from made.queries.evidence import Evidence
from made.queries.imputation import draw
from made.queries.random import uniform

NUMBERS = 2**24  # features of rows that are in memory at a time
LARGEST = 1e10  # above any learned weight


class Features:
    """The features of rows, (rows, input units and flags); :meth:`hide` marks values as missing.

    Arguments:
        columns: the columns of the network.
        values: the rows, as the column kinds code them.
        decided: the columns that may have missing values, in the order in which they are decided.
    """

    def __init__(self, columns: Columns, values: Tensor, decided: Sequence[int]) -> None:
        units = columns.encode(values).cpu().double()
        self.table = torch.cat([units, units.new_zeros(len(units), len(decided))], dim=1)
        self.own = [torch.from_numpy(np.flatnonzero(columns.input_columns == d)) for d in decided]
        self.flags = columns.inputs  # where the flags begin

    def hide(self, index: int, rows: Tensor) -> None:
        """The value of the column that is decided at ``index`` is missing in some rows, given as flags."""
        which = rows.nonzero().squeeze(1)
        self.table[which.unsqueeze(1), self.own[index]] = 0
        self.table[which, self.flags + index] = 1


@dataclass(frozen=True, eq=False)
class Missingness:
    """The distribution of missing values, given the values. For D' columns and up to K features of each:

    Attributes:
        columns: the columns that may have missing values, in the order in which they are decided, (D').
        features: the features that each depends on, (D', K): input units, then flags of the columns.
        weights: their weights, (D', K), 0 for one that is not used.
        biases: (D').
    """

    columns: Tensor
    features: Tensor
    weights: Tensor
    biases: Tensor

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor], columns: Columns) -> Missingness:
        """The inverse of :meth:`tensors`, which validates its input."""
        if tensors.keys() != {"columns", "features", "weights", "biases"}:
            raise ValueError("the missing values of a model need columns, features, weights and biases.")
        decided, features, weights, biases = (tensors[each] for each in ("columns", "features", "weights", "biases"))
        fits = decided.ndim == 1 and features.ndim == 2 and features.shape == weights.shape
        if not fits or not len(decided) == len(features) == len(biases) == biases.numel():
            raise ValueError("the tensors of missing values do not fit each other.")
        for indices, count in ((decided, len(columns)), (features, columns.inputs + len(decided))):
            if not bool(((indices >= 0) & (indices < count) & (indices == indices.floor())).all()):
                raise ValueError("the missing values of a model name columns or features that it does not have.")
        if len(decided.unique()) < len(decided):
            raise ValueError("the missing values of a model name a column twice.")
        if not bool((weights.abs() <= LARGEST).all() and (biases.abs() <= LARGEST).all()):
            raise ValueError(f"the missing values of a model have weights above {LARGEST:g}.")
        return cls(decided.long(), features.long(), weights.double(), biases.double())

    def tensors(self) -> dict[str, Tensor]:
        """The content of its file."""
        return {name: tensor.double() for name, tensor in vars(self).items()}

    def hide(
        self, network: Network, codes: NDArray[np.float64], known: NDArray[np.bool_], generator: torch.Generator
    ) -> NDArray[np.float64]:
        """Complete rows with NaN where a value is missing; what is ``known`` stays. All are (rows, columns)."""
        hidden, decided = codes.copy(), self.columns.tolist()
        size = max(1, NUMBERS // (network.columns.inputs + len(decided))) if decided else len(codes)
        for rows in blocks(len(codes) if decided else 0, size):
            features = Features(network.columns, Evidence.of(network, codes[rows]).values, decided)
            noise = uniform(len(features.table), len(decided), like=network.c, generator=generator).cpu()
            fixed = torch.from_numpy(known[rows])
            for index, d in enumerate(decided):
                logits = features.table[:, self.features[index]] @ self.weights[index] + self.biases[index]
                missing = (noise[:, index] < logits.sigmoid()) & ~fixed[:, d]
                features.hide(index, missing)
                hidden[rows][missing.numpy(), d] = np.nan
        return hidden


@in_blocks
def draw_incomplete(
    ensemble: Ensemble,
    known: NDArray[np.float64],
    missingness: Missingness | None,
    generator: torch.Generator,
    temperature: float = 1.0,
) -> NDArray[np.float64]:
    """Rows with every NaN drawn, and some of the draws missing. Shapes: (rows, columns) to (rows, columns)."""
    if missingness is None:
        raise QuestionError(
            f"{argument('missing')}: the model has not learned which values are missing, because its training did not "
            "end, or it was saved by an earlier version. Fit it again."
        )
    drawn = draw(ensemble, known, generator, temperature)
    return missingness.hide(ensemble.network, drawn, ~np.isnan(known), generator)
