r"""MADE behind the protocol of the baselines (Germain, Gregor, Murray and Larochelle, ICML 2015), and FVSBN.

.. math::
    h &= g(b + (W \odot M^W) x), \qquad p(x_d = 1 \mid x_{<d}) = \sigma(c + (V \odot M^V) h)_d \\
    p(x) &= \frac{1}{R} \sum_r \prod_d p(x_d \mid x_{<d}; M_r)

The masks M let an output depend only on the columns before it in an ordering; each of the R masks has its own ordering.

FVSBN, the fully visible sigmoid belief network (Frey, Hinton and Dayan, 1996), is logistic autoregression, which is
MADE without hidden layers, with direct connections only:

.. math:: p(x_d = 1 \mid x_{<d}) = \sigma(c_d + A_{d,<d} \, x_{<d})

Weight decay or input dropout keeps its D (D - 1) / 2 weights from overfitting small tables; how much is needed depends
on the table.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from made.baselines.protocol import Baseline, Bits, LogProb
from made.parameters import PLAIN

# From no regularization to much. One-hot tables need high learning rates and biases that start at zero, tables of a few
# hundred rows the opposite.
TRIES: tuple[Mapping[str, Any], ...] = (
    {"learning_rate": 3e-2, "bias": "zero"},
    {"learning_rate": 3e-2, "bias": "zero", "weight_decay": 0.1},
    {"learning_rate": 3e-2, "bias": "zero", "input_dropout": 0.2},
    {"learning_rate": 3e-3, "bias": "independent", "input_dropout": 0.5},
)


class MADEBaseline(Baseline):
    """A :class:`made.MADE` of binary columns.

    Arguments:
        seed: its ``random_state``.
        parameters: overrides of :attr:`PARAMETERS`, parameters of :class:`made.MADE`.

    Attributes:
        model_: the estimator.
    """

    PARAMETERS: ClassVar[dict[str, Any]] = {"residual": True, "signed": False, "learning_rate": 2e-3}
    PARAMETERS |= {"schedule": "cosine", "weight_decay": 0.0, "clip": 5.0, "batch_size": 100, "max_epochs": 100}

    def __init__(self, *, seed: int = 0, **parameters: Any) -> None:
        self.seed, self.parameters = seed, self.PARAMETERS | parameters

    def _fit(self, train: Bits, valid: Bits, seconds: float | None) -> None:
        from made.estimator import MADE

        model = MADE(**(PLAIN | self.parameters), columns="binary", max_seconds=seconds, random_state=self.seed)
        self.model_ = model.fit(train, X_valid=valid)
        self.epochs, self.size = model.n_epochs_, sum(weight.numel() for weight in model.model_.network.parameters())

    def _log_prob(self, rows: Bits) -> LogProb:
        return LogProb(self.model_.score_samples(rows).astype(np.float64))

    def _sample(self, n: int, seed: int) -> Any:
        return self.model_.sample(n, random_state=seed)


class OneMask(MADEBaseline):
    """MADE with one mask, in the natural ordering: the paper's row "MADE"."""

    PARAMETERS: ClassVar[dict[str, Any]] = MADEBaseline.PARAMETERS | {"masks": 1, "ordering": "natural"}
    PARAMETERS |= {"hidden_sizes": (500, 500), "dropout": 0.3, "max_epochs": 200}


class MaskSampling(MADEBaseline):
    """MADE with a list of masks, cycled through in training and averaged in queries: "MADE mask sampling"."""

    PARAMETERS: ClassVar[dict[str, Any]] = MADEBaseline.PARAMETERS | {"masks": 10, "learning_rate": 5e-3}
    PARAMETERS |= {"hidden_sizes": (500,), "dropout": 0.25, "max_epochs": 300}


class FVSBN(MADEBaseline):
    """Logistic autoregression: an exact likelihood.

    Arguments:
        tries: alternative parameters, chosen by the validation rows; a time limit is shared among them.
        seed: the ``random_state`` of the models.
        parameters: parameters of :class:`made.MADE` that override every try.

    Example:
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1)
        >>> model = FVSBN(max_epochs=50, learning_rate=0.1).fit(rows[:150], rows[150:])
        >>> -model.log_prob(rows).mean() < 1  # three equal coins, log 2 = 0.69
        True
    """

    PARAMETERS: ClassVar[dict[str, Any]] = MADEBaseline.PARAMETERS | {"masks": 1, "ordering": "natural"}
    PARAMETERS |= {"hidden_sizes": (), "residual": False, "dropout": 0.0}

    def __init__(self, *, tries: Sequence[Mapping[str, Any]] = TRIES, seed: int = 0, **parameters: Any) -> None:
        super().__init__(seed=seed, **parameters)
        if not tries:
            raise ValueError("'tries' should have at least one set of parameters; [{}] uses the defaults.")
        self.tries, self.overrides = tries, parameters

    def _fit(self, train: Bits, valid: Bits, seconds: float | None) -> None:
        end, best = time.perf_counter() + (math.inf if seconds is None else seconds), -math.inf
        for number, parameters in enumerate(self.tries):
            left = end - time.perf_counter()
            if number and left <= 0:
                break
            share = None if seconds is None else max(left, 1e-9) / (len(self.tries) - number)
            model = MADEBaseline(seed=self.seed, **(self.parameters | dict(parameters) | self.overrides))
            score = model.fit(train, valid, seconds=share).log_prob(valid).mean()
            if not number or score > best:
                best, self.model_, self.epochs = score, model.model_, model.epochs
        columns = train.shape[1]
        self.size = columns * (columns + 1) // 2  # without the weights that the mask sets to zero
