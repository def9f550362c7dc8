r"""FVSBN, the fully visible sigmoid belief network (Frey, Hinton and Dayan, 1996): logistic autoregression.

.. math:: p(x_d = 1 \mid x_{<d}) = \sigma(c_d + A_{d,<d} \, x_{<d})

It is MADE with no hidden layer, only direct connections, so the engine does it. Inputs that are left out at random
(``input_dropout``) keep its D (D - 1) / 2 weights from learning few rows by heart.
"""

from __future__ import annotations

from typing import Any, ClassVar

from made.baselines.engine import Engine

__all__ = ["FVSBN"]


class FVSBN(Engine):
    """Logistic autoregression: an exact likelihood.

    Example:
        >>> import numpy as np
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1)
        >>> model = FVSBN(max_epochs=100, learning_rate=0.1).fit(rows[:150], rows[150:])
        >>> -model.log_prob(rows).mean() < 1  # three equal coins, log 2 = 0.69
        True
    """

    PARAMETERS: ClassVar[dict[str, Any]] = Engine.PARAMETERS | {
        "hidden_sizes": (),
        "masks": 1,
        "ordering": "natural",
        "residual": False,
        "dropout": 0.0,
        "learning_rate": 3e-2,
        "max_epochs": 300,
    }
