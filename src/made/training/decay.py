r"""Weight decay that depends on how much of each column the others explain.

Weights that predict noise should stay small. Those that predict a column which follows from others have to be large,
since its logits are: with one decay for all, either the former overfit or the latter never get there. Of a ridge
regression, the best penalty is the ratio of noise to signal, :math:`(1 - R^2) / R^2`. So the decay of the weights of a
column's output units is that of the config, times this ratio, at most 1. Hidden layers, which the columns share, have
the mean of these factors.

:math:`R^2` is Nagelkerke's (1991), from the mean log-likelihoods of a column in validation rows, given all other
columns (:math:`\ell`) and given none (:math:`\ell_0`):

.. math:: R^2 = \frac{1 - e^{-2 (\ell - \ell_0)}}{1 - e^{2 \ell_0}}

The denominator is the largest that the numerator can be; for a density it is 1. Exclusive columns
(:mod:`made.columns.exclusive`), which tell each other, have the factor of their group, given all other columns.
"""

from __future__ import annotations

import torch
from torch import Tensor

from made.network.dense import dense_outputs
from made.network.masked import Network
from made.queries.evidence import Evidence
from made.training.config import TrainingConfig

EPOCHS = 5  # between two measurements
MOST_PASSES = 4096  # rows in a measurement, each asked about one column
LEAST = 0.03  # of the factors


class AdaptiveDecay:
    """The decay of the weights of an any-order network, in place of that of the optimizer.

    Arguments:
        network: the network, which answers about each column with all others given.
        weight_decay: the decay of the weights of a column that the others explain at most half.
        valid: the validation rows.

    Attributes:
        factors: of the decay, (columns).
    """

    def __init__(self, network: Network, weight_decay: float, valid: Evidence) -> None:
        self.network, self.weight_decay = network, weight_decay
        family = network.connectivities
        sizes = torch.tensor(family.groups or [1] * len(network.columns), device=network.c.device)
        self.number = torch.arange(len(sizes), device=sizes.device).repeat_interleave(sizes)  # of the group of a column
        rows = max(1, min(len(valid), MOST_PASSES // family.positions))
        self.rows = valid[torch.arange(rows, device=valid.values.device) * len(valid) // rows]
        slower = network.slower()
        weights = {name: network.get_parameter(name).detach() for name in network.matrices}
        last = ("V", "A", f"U{network.depth + 1}")
        self._hidden = [each for name, each in weights.items() if name not in last]
        self._rates = [1 / slower.get(name, 1) for name in weights if name not in last]
        self._last = [(weights[name], 1 / slower.get(name, 1)) for name in last if name in weights]
        self.set(torch.ones_like(network.c[: len(network.columns)]).detach())

    def set(self, factors: Tensor) -> None:
        """Use these factors from now on."""
        self.factors, self._mean = factors, factors.mean().item()
        self._of_outputs = self.network.columns.per_output(factors.unsqueeze(1))

    @classmethod
    def of(cls, network: Network, config: TrainingConfig, valid: Evidence | None) -> AdaptiveDecay | None:
        """That of a run; ``None`` where the optimizer decays all weights alike."""
        wanted = config.adaptive_decay and config.weight_decay > 0 and config.optimizer == "adamw"
        answers = network.connectivities.any_order and config.segments >= network.connectivities.positions > 1
        if not wanted or not answers or valid is None or not len(valid):
            return None
        return cls(network, config.weight_decay, valid)

    def shrink(self, rate: float) -> None:
        """Decay the weights, as AdamW does before a step of a learning rate."""
        step = rate * self.weight_decay
        if self._hidden:
            torch._foreach_mul_(self._hidden, [1 - step * self._mean * slower for slower in self._rates])
        for weight, slower in self._last:
            weight.mul_(self._of_outputs.mul(-step * slower).add_(1))

    @torch.no_grad()
    def measure(self) -> None:
        """Set the factors by the present weights of the network."""
        columns, observed = self.network.columns, self.rows.is_observed
        (rows, width), groups = observed.shape, self.network.connectivities.positions
        places = torch.arange(width, device=observed.device)
        every = torch.arange(rows, device=observed.device).repeat_interleave(groups)
        others = (self.number != torch.arange(groups, device=observed.device).unsqueeze(1)).repeat(rows, 1)
        informed = self._log_prob(self.rows[every], observed[every] & others)
        informed = informed.view(rows, groups, width)[:, self.number, places]
        alone = self._log_prob(self.rows, torch.zeros_like(observed))
        known = observed.sum(dim=0).clamp(min=1)
        gain, alone = (torch.where(observed, each, 0).sum(dim=0) / known for each in (informed - alone, alone))
        gain, alone = (each.new_zeros(groups).index_add_(0, self.number, each)[self.number] for each in (gain, alone))
        listed = torch.tensor([kind.listed for kind in columns], device=observed.device)
        most = torch.where(listed, -torch.expm1(2 * alone), 1)
        share = -torch.expm1(-2 * gain.clamp(min=0)) / most.clamp(min=1e-6)
        self.set(((1 - share) / share).nan_to_num(1).clamp(LEAST, 1))

    def _log_prob(self, rows: Evidence, given: Tensor) -> Tensor:
        """The log-likelihood of each entry, given these entries of its row. Shape: (rows, columns)."""
        columns = self.network.columns
        x = columns.encode(rows.values) if rows.inputs is None else rows.inputs
        units = dense_outputs(self.network, x * columns.per_unit(given.to(x.dtype)), given)
        logits = columns.coupled(units.t(), rows.values, rows.observed, given)
        return columns.log_prob(logits, rows.values, rows.targets)

    def restore(self, factors: Tensor | None) -> None:
        """Take factors from a checkpoint, which may come from an untrusted file."""
        if factors is None or factors.shape != self.factors.shape or not bool(((factors > 0) & (factors <= 1)).all()):
            raise ValueError("the state has no sound factors of the weight decay.")
        self.set(factors.to(self.factors))
