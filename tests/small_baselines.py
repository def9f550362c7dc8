"""Small baselines on binary rows, and slow oracles for them."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from torch.nn import functional as F

from made.baselines.bernoulli import BernoulliMixture
from made.baselines.bipartite import Bipartite
from made.baselines.boltzmann import DBM, DBN, RBM
from made.baselines.darn import DARN
from made.baselines.eonade import EoNADE
from made.baselines.made import FVSBN, MaskSampling, OneMask
from made.baselines.nade import NADE
from made.baselines.tied import TiedMADE
from oracle import structured

COLUMNS = 5

WORLDS = np.array(list(itertools.product((0, 1), repeat=COLUMNS)), dtype=np.uint8)

TRAIN, VALID = structured(seed=0), structured(100, seed=1)

TIED = {"orderings": 3, "any_order": 0.5, "line": 2, "standardized": True, "dropout": 0.3, "input_dropout": 0.1}

FAST = {
    "bernoulli": lambda seed=0: BernoulliMixture(1, seed=seed),
    "mixture": lambda seed=0: BernoulliMixture((2, 4), seed=seed),
    "fvsbn": lambda seed=0: FVSBN(max_epochs=5, learning_rate=0.02, seed=seed),
    "nade": lambda seed=0: NADE(12, ordering="random", max_epochs=5, seed=seed),
    "eonade": lambda seed=0: EoNADE((12,), orderings=3, max_epochs=1, learning_rate=0.01, seed=seed),
    "eonade2": lambda seed=0: EoNADE((12, 8), orderings=3, max_epochs=1, learning_rate=0.01, dropout=0.2, seed=seed),
    "made": lambda seed=0: OneMask(hidden_sizes=(12,), max_epochs=5, seed=seed),
    "made-masks": lambda seed=0: MaskSampling(hidden_sizes=(12,), masks=3, max_epochs=5, seed=seed),
    "tied": lambda seed=0: TiedMADE(12, **TIED, max_epochs=5, seed=seed),
}


def naive(x, W, b, V, c, u, activation, t=None, width=1):
    """NADE as its equations are written, a hidden layer for each column."""
    units = torch.sigmoid if activation == "sigmoid" else torch.relu
    logits = []
    for d in range(x.shape[1]):
        a = b + x[:, :d] @ W[:d]
        if u is not None:
            a = a + u[:d].sum(dim=0)
        if t is not None:
            a = a + t[d // width]
        logits.append(units(a) @ V[d] + c[d])
    return torch.stack(logits, dim=1)


def bits(rows, columns, share=0.5):
    return (torch.rand((rows, columns), generator=torch.Generator().manual_seed(0)) < share).double()


def states(units: int) -> torch.Tensor:
    return torch.tensor(list(itertools.product((0.0, 1.0), repeat=units)), dtype=torch.float64)


SMALL = {
    "rbm": lambda seed=0: RBM(4, max_epochs=30, learning_rate=0.03, seed=seed),
    "dbn": lambda seed=0: DBN((4, 3), max_epochs=30, learning_rate=0.03, seed=seed),
    "dbm": lambda seed=0: DBM((4, 3), max_epochs=30, learning_rate=0.03, seed=seed),
    "darn": lambda seed=0: DARN(4, max_epochs=30, learning_rate=0.03, seed=seed),
    "darn-noise": lambda seed=0: DARN(4, noise=True, max_epochs=30, learning_rate=0.03, seed=seed),
}


def random_machine(left: int, right: int, seed: int, scale: float = 0.7) -> Bipartite:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((left, right), (left,), (right,))
    return Bipartite(*(scale * torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes))


def brute(machine: Bipartite) -> float:
    """log Z, by all states of both sides."""
    x, y = states(len(machine.a)), states(len(machine.b))
    weights = (x @ machine.a)[:, None] + y @ machine.b + x @ machine.W @ y.t()
    return float(weights.flatten().logsumexp(dim=0))


def truth(model) -> np.ndarray:
    """log p of all rows, by all states of all hidden units."""
    x = states(COLUMNS)
    if isinstance(model, RBM):
        machine = model.machine_.double()
        joint = (x @ machine.a)[:, None] + states(4) @ machine.b + x @ machine.W @ states(4).t()
        return (joint.logsumexp(dim=1) - brute(machine)).numpy()
    if isinstance(model, DBM):
        machine, every = model.machine_.double(), states(4)
        both = torch.cat([x.repeat_interleave(8, 0), states(3).repeat(len(x), 1)], dim=1)
        joint = (both @ machine.a)[:, None] + every @ machine.b + both @ machine.W @ every.t()
        return (joint.reshape(len(x), -1).logsumexp(dim=1) - brute(machine)).numpy()
    h = states(4)
    if isinstance(model, DBN):
        lower, upper, above = model.lower_.machine_.double(), model.machine_.double(), states(3)
        top = (h @ upper.a)[:, None] + above @ upper.b + h @ upper.W @ above.t()
        prior = top.logsumexp(dim=1) - brute(upper)
        logits = (lower.a + h @ lower.W.t()).expand(len(x), -1, -1)
    else:
        network = model.network_.double()
        with torch.no_grad():
            below, above = F.linear(h, network.U.tril(-1), network.b), F.linear(x, network.A.tril(-1), network.c)
            prior = -F.binary_cross_entropy_with_logits(below, h, reduction="none").sum(dim=1)
            logits = above[:, None] + h @ network.V.t()
        network.float()
    rows = -F.binary_cross_entropy_with_logits(logits, x[:, None].expand_as(logits), reduction="none").sum(dim=2)
    return (rows + prior).logsumexp(dim=1).detach().numpy()
