"""The loss of an update and its gradient, written out: a pass, the likelihood of all columns, and back.

For the networks of most tables, autograd takes longer than what it computes. The loss is that of
:class:`made.training.objective.Objective`, which autograd differentiates for all other networks.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from made.columns.fused import Evaluation, Targets
from made.network.explicit import ExplicitPass
from made.network.masked import Network
from made.training.pairs import CountedPairs


class ExplicitLoss:
    """Losses of a network that is :meth:`supported`; memory is used again in the next update.

    Arguments:
        network: the network, whose parameters get their gradients.
        shares: the weight of each column in the loss, (columns). Default: 1.
    """

    def __init__(self, network: Network, shares: Tensor | None = None) -> None:
        assert network.columns.joint is not None
        self.network, self.joint, self.passes = network, network.columns.joint, ExplicitPass(network)
        self._gradients = [(each, self.passes.gradients[name]) for name, each in network.named_parameters()]
        self._order = torch.tensor(self.joint.order, device=network.c.device)
        self._shares = None if shares is None else shares[self._order].unsqueeze(1)
        self._evaluations: dict[int, Evaluation] = {}

    @staticmethod
    def supported(network: Network) -> bool:
        """Whether the passes of a network and the likelihood of its columns can be written out."""
        joint = network.columns.joint
        alone = network.columns.coupling is None
        return joint is not None and not joint.others and alone and ExplicitPass.supported(network)

    @torch.no_grad()
    def of_rows(
        self,
        inputs: Tensor,
        targets: Targets,
        asked: Tensor,
        weights: Tensor,
        *,
        masks: Mapping[str, Tensor] | None = None,
        pairs: tuple[CountedPairs, Tensor, float] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The NLL of what is asked of each row, (rows), and the loss, whose gradients the parameters get.

        Arguments:
            inputs: the input units, 0 for what is not seen, (rows, inputs).
            targets: what the values ask of the output units.
            asked: 1 for an entry that is asked for, otherwise 0, (rows, columns).
            weights: the weight of each row's NLL, (rows).
            masks: the masks of a pass; ``None`` for all connections.
            pairs: counted pairs, which of their contexts, and the weight of their loss, in the same pass.
        """
        rows = inputs.shape[0]
        x = inputs if pairs is None else torch.cat([inputs, pairs[0].inputs[pairs[1]]])
        units = self.passes.outputs(x, masks)
        evaluation = self._evaluations.get(rows)
        if evaluation is None:
            evaluation = self._evaluations[rows] = Evaluation(self.joint, rows, units)
        flags = asked.t().index_select(0, self._order)
        log_p = evaluation.log_prob(units if pairs is None else units[:, :rows], targets)
        of_columns = torch.mul(log_p, flags)
        nll = of_columns.sum(dim=0).neg_()
        loss, flags = nll @ weights, flags.mul_(-weights)
        if self._shares is not None:
            loss, flags = -(of_columns @ weights) @ self._shares[:, 0], flags.mul_(self._shares)
        gradient = evaluation.gradient(flags)
        if pairs is not None:
            counted_pairs, which, weight = pairs
            of_contexts, of_pairs = counted_pairs.differentiate(units[:, rows:], which)
            gradient, loss = torch.cat([gradient, of_pairs.mul_(weight)], dim=1), loss + of_contexts * weight
        self.passes.differentiate(gradient)
        for parameter, own in self._gradients:
            parameter.grad = own
        return nll, loss
