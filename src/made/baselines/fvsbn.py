r"""FVSBN, the fully visible sigmoid belief network, or logistic autoregression (Frey, Hinton and Dayan, NIPS 1995).

.. math:: p(x_d = 1 \mid x_{<d}) = \sigma\Big(c_d + \sum_{i < d} A_{di} x_i\Big)

Each column is a logistic regression on those before it. It is MADE with no hidden layer, direct connections only, and the
engine's staircase makes of it one triangular product.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from numpy.typing import ArrayLike

from made.baselines.made import Engine
from made.baselines.rows import learned

__all__ = ["FVSBN"]

# From little regularisation to much. Biases that begin at zero are what sparse tables, coded one-hot, learn from best.
TRIES: tuple[Mapping[str, Any], ...] = (
    {"learning_rate": 3e-2, "bias": "zero"},
    {"learning_rate": 3e-2, "bias": "zero", "weight_decay": 0.1},
    {"learning_rate": 3e-2, "bias": "zero", "input_dropout": 0.2},
    {"learning_rate": 3e-3, "input_dropout": 0.5},
)


class FVSBN(Engine):
    """A logistic regression of each column on those before it, an exact likelihood.

    Arguments:
        tries: how to train: each is tried, and validation rows choose. A model without hidden layers is trained in no
            time, but how much regularisation it needs depends on the table. A limit of time is shared among them.
        seed: the seed of everything that is random.
        parameters: what is to differ in :data:`PARAMETERS`, of :class:`made.MADE`.

    Attributes:
        model_: the estimator.
        size: the number of parameters, D (D - 1) / 2 + D.

    Example:
        >>> import numpy as np
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1)
        >>> model = FVSBN(max_epochs=20).fit(rows[:150], rows[150:])
        >>> -model.log_prob(rows).mean() < 1  # three equal coins, log 2 = 0.69
        True
    """

    PARAMETERS: dict[str, Any] = {  # noqa: RUF012
        "hidden_sizes": (),
        "masks": 1,
        "ordering": "natural",
        "signed": False,
        "schedule": "cosine",
        "weight_decay": 0.0,
        "clip": 5.0,
        "average": 0.99,
        "batch_size": 100,
        "max_epochs": 100,
    }

    def __init__(self, *, tries: Sequence[Mapping[str, Any]] = TRIES, seed: int = 0, **parameters: Any) -> None:
        super().__init__(seed=seed, **parameters)
        if not tries:
            raise ValueError("'tries' should be at least one.")
        self.tries = tries

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Train with each regularisation, and keep what is best on validation rows."""
        rows, others = learned(train, valid)
        begin, models = time.perf_counter(), []
        for left, parameters in zip(range(len(self.tries), 0, -1), self.tries, strict=True):
            spent = time.perf_counter() - begin
            if seconds is not None and models and spent >= seconds:
                break
            share = None if seconds is None else max(seconds - spent, 1e-3) / left
            models.append(self._estimator(share, **parameters).fit(rows, X_valid=others))
        return self._take(min(models, key=lambda model: model.valid_nll_ or 0.0))
