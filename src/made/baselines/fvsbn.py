r"""FVSBN, the fully visible sigmoid belief network (Frey, Hinton and Dayan, 1996): logistic autoregression.

.. math:: p(x_d = 1 \mid x_{<d}) = \sigma(c_d + A_{d,<d} \, x_{<d})

It is MADE without hidden layers, with direct connections only. Weight decay or input dropout keeps its D (D - 1) / 2
weights from overfitting small tables; how much is needed depends on the table.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from made.baselines.made import MADEBaseline

__all__ = ["FVSBN"]

# From no regularisation to much. One-hot tables need high learning rates and biases that start at zero, tables of a few
# hundred rows the opposite.
TRIES: tuple[Mapping[str, Any], ...] = (
    {"learning_rate": 3e-2, "bias": "zero"},
    {"learning_rate": 3e-2, "bias": "zero", "weight_decay": 0.1},
    {"learning_rate": 3e-2, "bias": "zero", "input_dropout": 0.2},
    {"learning_rate": 3e-3, "bias": "independent", "input_dropout": 0.5},
)


class FVSBN(MADEBaseline):
    """Logistic autoregression: an exact likelihood.

    Arguments:
        tries: alternative parameters, chosen by the validation rows; a time limit is shared among them.
        seed: the ``random_state`` of the models.
        parameters: parameters of :class:`made.MADE` that override those of every try.

    Example:
        >>> import numpy as np
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1)
        >>> model = FVSBN(max_epochs=50, learning_rate=0.1).fit(rows[:150], rows[150:])
        >>> -model.log_prob(rows).mean() < 1  # three equal coins, log 2 = 0.69
        True
    """

    PARAMETERS: ClassVar[dict[str, Any]] = MADEBaseline.PARAMETERS | {
        "hidden_sizes": (),
        "masks": 1,
        "ordering": "natural",
        "residual": False,
        "dropout": 0.0,
    }

    def __init__(self, *, tries: Sequence[Mapping[str, Any]] = TRIES, seed: int = 0, **parameters: Any) -> None:
        super().__init__(seed=seed, **parameters)
        if not tries:
            raise ValueError("'tries' should have at least one set of parameters; [{}] uses the defaults.")
        self.tries, self.overrides = tries, parameters

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Train one model for each try, and keep the one with the best validation likelihood."""
        begin, best, best_score = time.perf_counter(), None, -math.inf
        for number, parameters in enumerate(self.tries):
            left = None if seconds is None else seconds - (time.perf_counter() - begin)
            if best is not None and left is not None and left <= 0:
                break
            share = None if left is None else max(left, 1e-9) / (len(self.tries) - number)
            model = MADEBaseline(seed=self.seed, **(self.parameters | dict(parameters) | self.overrides))
            score = model.fit(train, valid, seconds=share).log_prob(valid).mean()
            if best is None or score > best_score:
                best, best_score = model, score
        assert best is not None
        self.model_, self.columns_, self.epochs = best.model_, best.columns_, best.epochs
        self.size = self.columns_ * (self.columns_ + 1) // 2  # without the weights that the mask sets to zero
        return self
