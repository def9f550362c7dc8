r"""The common form of the likelihoods of all built-in kinds, which :mod:`made.columns.fused` evaluates together.

.. math:: p(x) = a(x)\, \pi_{i(x)} + b(x)\, \pi_\text{rest}\, R(x) + c(x)

- :math:`\pi` is a softmax over the first units of a column (of a single unit, the sigmoid of a logit): the listed
  values, or the points and the rest of :class:`made.columns.point_masses.PointMasses`;
- :math:`R(x) = \alpha(x)\, N(x) / N_\text{low} + \beta(x)` is the density, or the probability, of x under a mixture of
  logistics that may be truncated at a least value, with

  .. math:: N(x) = \lambda \sum_k \pi_k\, \sigma((e - \mu_k) / s_k)\, \sigma((\mu_k - f) / s_k)\, A_k + \omega(x),
      \qquad A_k = 1 - e^{(f - e) / s_k},

  where f and e are the ends of the step of x. Without steps, both are x, and :math:`A_k = 1 / s_k`. The learned
  components have the share :math:`\lambda`; those of fixed width have the likelihood :math:`\omega`.
  :math:`N_\text{low}` is the same sum over all values above the least one.

What depends on x, but not on the network, is a :class:`Target`.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Form(NamedTuple):
    """How the output units of a column form its likelihood: the logits first, then the units of the mixture.

    Attributes:
        choices: the number of logits of the softmax; 1 for a single logit, 0 for none.
        components: the number of learned logistics; 0 for none. Their units are logits, means, and log scales.
        stepped: whether values have steps.
        least_scale: what is added to each learned scale.
        learned: the share of the learned logistics.
        low: the least value, where the mixture is truncated; ``None`` for none.
        wide_above: the share above it of the logistics of fixed width.
    """

    choices: int
    components: int = 0
    stepped: bool = False
    least_scale: float = 0.0
    learned: float = 1.0
    low: float | None = None
    wide_above: float = 0.0


class Target(NamedTuple):
    """The terms of the likelihood that depend on the values alone. The last six are for mixtures.

    Attributes:
        choice: i, the number of a logit; of a single logit, 1 or 0.
        log_choice: log a.
        log_floor: log c.
        log_rest: log b.
        begin, width: the lower end of the step, and its width; the difference of two ends would lose digits.
        wide: the likelihood under the logistics of fixed width.
        log_factor: the logarithm of the factor of the likelihood of the mixture.
        log_far: the logarithm of the term that is added to it.
    """

    choice: Tensor
    log_choice: Tensor
    log_floor: Tensor
    log_rest: Tensor | None = None
    begin: Tensor | None = None
    width: Tensor | None = None
    wide: Tensor | None = None
    log_factor: Tensor | None = None
    log_far: Tensor | None = None
