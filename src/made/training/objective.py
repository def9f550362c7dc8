"""What an update maximises: the log-likelihood of whole rows, or of the answers to random questions about them."""

from __future__ import annotations

import torch
from torch import Tensor

from made.queries.evidence import Evidence

__all__ = ["ask_at_random", "give_at_random"]


def ask_at_random(evidence: Evidence, generator: torch.Generator) -> Evidence:
    """A random question about each row: some entries given, some missing, at least one asked for.

    The shares of the three, and the entries, are drawn for each row.
    """
    values = evidence.values
    share = torch.rand(len(values), 2, generator=generator, device=values.device).sort(dim=1).values
    role = torch.rand(values.shape, generator=generator, device=values.device)
    given, asked = role < share[:, :1], role >= share[:, 1:]
    one = torch.rand(values.shape, generator=generator, device=values.device)
    if evidence.observed is not None:
        given, asked, one = given & evidence.observed, asked & evidence.observed, one * evidence.observed
    asked.scatter_(1, one.argmax(dim=1, keepdim=True), True)
    if evidence.observed is not None:
        asked &= evidence.observed  # a row without any observed entry asks for nothing
    return Evidence(values, asked | given, given & ~asked)


def give_at_random(evidence: Evidence, generator: torch.Generator) -> tuple[Evidence, Tensor]:
    r"""A random part of each row given, of uniform size, the rest asked for; and the weight of its log-likelihood.

    With d of D columns given, each conditional of the rest estimates that of position d + 1, so that the sum over the
    rest is weighted by :math:`D / (D - d)`. The mean over all parts is the mean NLL of a row over all orderings (Uria,
    Murray and Larochelle, 2014).
    """
    values = evidence.values
    place = torch.rand(values.shape, generator=generator, device=values.device)
    observed = torch.ones_like(values, dtype=torch.bool) if evidence.observed is None else evidence.observed
    rank = place.masked_fill(~observed, 2).argsort(dim=1).argsort(dim=1)
    count = observed.sum(dim=1, keepdim=True)
    share = torch.rand(len(values), 1, generator=generator, device=values.device)
    size = (share * count).long()
    asked = Evidence(values, evidence.observed, (rank < size) & observed)
    return asked, (count / (count - size).clamp(min=1)).squeeze(1).to(values.dtype)
