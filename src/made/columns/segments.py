"""Softmaxes over segments of logits, all at once.

The exponentials of all logits are added up by one matrix product. A column with a single logit is a segment too: its
other choice has the logit 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

# The most, and the inverse of the least, that exponentials of logits may add up to.
MOST_SUM = 1e25


class Segments:
    """Which logits are added up.

    Arguments:
        segments: the number of the segment that each logit belongs to.
        count: the number of segments.
        singles: how many of them, the first ones, have a single logit.
        like: a tensor of the dtype and device to work with.

    Attributes:
        member: 1 for the logits of each segment, (segments, logits).
    """

    def __init__(self, segments: Sequence[int], count: int, singles: int, like: Tensor) -> None:
        self.singles = singles
        self.of_logits = torch.tensor(segments, dtype=torch.long, device=like.device)
        self.member = (self.of_logits == torch.arange(count, device=like.device).unsqueeze(1)).to(like)
        self.minus_transposed = -self.member.t().contiguous()
        self.beside = (torch.arange(count, device=like.device) < singles).to(like).unsqueeze(1)


class Softmax:
    """Memory for softmaxes of ``logits``, (logits, rows), over segments.

    Attributes:
        shares: the exponentials of the logits, (logits, rows).
        sums: their sums, (segments, rows).
        log_sums: the logarithms of the sums: a logit less this one is the logarithm of a probability.
    """

    def __init__(self, segments: Segments, logits: Tensor) -> None:
        self.segments, self.logits, self.shares = segments, logits, torch.empty_like(logits)
        self.sums, self.log_sums = logits.new_empty(2, len(segments.member), logits.shape[1]).unbind()

    def evaluate(self) -> None:
        """Add up what the memory of the logits holds."""
        segments = self.segments
        torch.exp(self.logits, out=self.shares)
        torch.addmm(segments.beside, segments.member, self.shares, out=self.sums)
        least, most = self.sums.aminmax()
        if least.item() > 1 / MOST_SUM and most.item() < MOST_SUM:
            torch.log(self.sums, out=self.log_sums)
        else:
            self._evaluate_relative()

    def _evaluate_relative(self) -> None:
        """Rarely, logits are so large or so small that each segment has to be relative to its own maximum, which is
        subtracted from its logits too, unless it is a single one."""
        singles, index = self.segments.singles, self.segments.of_logits.unsqueeze(1).expand_as(self.logits)
        tops = torch.full_like(self.sums, -math.inf).scatter_reduce_(0, index, self.logits, "amax")
        of_singles = tops[:singles].clamp_(min=0)
        relative = self.logits - tops.gather(0, index)
        torch.mm(self.segments.member, torch.exp(relative, out=self.shares), out=self.sums)
        self.sums[:singles].add_((-of_singles).exp_())
        torch.log(self.sums, out=self.log_sums)[:singles].add_(of_singles)
        self.logits[singles:] = relative[singles:]

    def gradient(self, to_log_sums: Tensor, out: Tensor) -> Tensor:
        """Write what the logits get from the gradient of minus the logarithms of the sums."""
        return torch.mm(self.segments.minus_transposed, to_log_sums / self.sums, out=out).mul_(self.shares)
