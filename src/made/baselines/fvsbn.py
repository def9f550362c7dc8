r"""FVSBN, the fully visible sigmoid belief network (Frey, Hinton and Dayan, 1996): logistic autoregression.

.. math:: p(x_d = 1 \mid x_{<d}) = \sigma(c_d + A_{d,<d} \, x_{<d})

It is MADE with no hidden layer, only direct connections, so the engine does it. Decay, or inputs that are left out at
random, keep its D (D - 1) / 2 weights from learning few rows by heart; how much of that is right depends on the table.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from made.baselines.engine import Engine

__all__ = ["FVSBN"]

# From no regularisation to much. One-hot tables want high rates, and biases that begin at zero; a few hundred rows want
# the opposite.
TRIES: tuple[Mapping[str, Any], ...] = (
    {"learning_rate": 3e-2, "bias": "zero"},
    {"learning_rate": 3e-2, "bias": "zero", "weight_decay": 0.1},
    {"learning_rate": 3e-2, "bias": "zero", "input_dropout": 0.2},
    {"learning_rate": 3e-3, "bias": "independent", "input_dropout": 0.5},
)


class FVSBN(Engine):
    """Logistic autoregression: an exact likelihood.

    Arguments:
        tries: ways to train, of which validation rows choose one; a limit of time is shared among them.
        seed: the seed of everything that is random.
        parameters: of :class:`made.MADE`; what is told here differs in no try.

    Example:
        >>> import numpy as np
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1)
        >>> model = FVSBN(max_epochs=50, learning_rate=0.1).fit(rows[:150], rows[150:])
        >>> -model.log_prob(rows).mean() < 1  # three equal coins, log 2 = 0.69
        True
    """

    PARAMETERS: ClassVar[dict[str, Any]] = Engine.PARAMETERS | {
        "hidden_sizes": (),
        "masks": 1,
        "ordering": "natural",
        "residual": False,
        "dropout": 0.0,
    }

    def __init__(self, *, tries: Sequence[Mapping[str, Any]] = TRIES, seed: int = 0, **parameters: Any) -> None:
        super().__init__(seed=seed, **parameters)
        if not tries:
            raise ValueError("'tries' should be one way to train, at least; {} is the engine's own.")
        self.tries, self.told = tries, parameters

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Train in each way, and keep the model that is best on validation rows."""
        begin, best, most = time.perf_counter(), None, -math.inf
        for number, ways in enumerate(self.tries):
            left = None if seconds is None else seconds - (time.perf_counter() - begin)
            if best is not None and left is not None and left <= 0:
                break
            share = None if left is None else max(left, 1e-9) / (len(self.tries) - number)
            one = Engine(seed=self.seed, **(self.parameters | dict(ways) | self.told)).fit(train, valid, seconds=share)
            score = one.log_prob(valid).mean()
            if best is None or score > most:
                best, most = one, score
        assert best is not None
        self.model_, self.columns_, self.epochs = best.model_, best.columns_, best.epochs
        self.size = self.columns_ * (self.columns_ + 1) // 2  # the engine also stores what its one mask leaves out
        return self
