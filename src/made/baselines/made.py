r"""MADE itself, with one mask and with a list of them (Germain, Gregor, Murray and Larochelle, ICML 2015).

.. math::
    h &= g(b + (W \odot M^W) x), \qquad p(x_d = 1 \mid x_{<d}) = \sigma(c + (V \odot M^V) h)_d \\
    p(x) &= \frac{1}{R} \sum_r \prod_d p(x_d \mid x_{<d}; M_r)

The masks M let an output see only what comes before it in an ordering; each of R has an ordering of its own.
"""

from __future__ import annotations

from typing import Any, ClassVar

from made.baselines.engine import Engine

__all__ = ["MaskSampling", "OneMask"]


class OneMask(Engine):
    """MADE with one mask, in the natural ordering: the paper's row "MADE"."""

    PARAMETERS: ClassVar[dict[str, Any]] = Engine.PARAMETERS | {
        "hidden_sizes": (500, 500),
        "masks": 1,
        "ordering": "natural",
        "dropout": 0.3,
        "max_epochs": 200,
    }


class MaskSampling(Engine):
    """MADE with a list of masks that updates cycle through and that answers average: "MADE mask sampling"."""

    PARAMETERS: ClassVar[dict[str, Any]] = Engine.PARAMETERS | {
        "hidden_sizes": (500,),
        "masks": 10,
        "dropout": 0.25,
        "learning_rate": 5e-3,
        "max_epochs": 300,
    }
