"""Draw one of several alternatives by their log weights."""

from __future__ import annotations

import torch
from torch import Tensor


def choose(log_weight: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """An alternative drawn by weight, and a fresh uniform number: the position of ``uniform`` within its share.

    If all weights are zero, the alternatives are equally likely. Shapes: (..., alternatives), (...) to (...), twice.
    """
    share = log_weight.softmax(dim=-1).nan_to_num(1 / log_weight.shape[-1])
    above = share.cumsum(dim=-1)
    uniform = uniform * above[..., -1]
    chosen = (uniform.unsqueeze(-1) >= above[..., :-1]).sum(dim=-1, keepdim=True)
    # Rounding may lead beyond the last alternative with a positive share.
    chosen = torch.where(share.gather(-1, chosen) > 0, chosen, share.argmax(dim=-1, keepdim=True))
    share, above = share.gather(-1, chosen).squeeze(-1), above.gather(-1, chosen).squeeze(-1)
    return chosen.squeeze(-1), ((uniform - above) / share + 1).clamp(0, 1)
