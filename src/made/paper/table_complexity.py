r"""The paper's Table 1, measured: how the time of an exact NLL grows with D, K, L and R.

D is the number of columns, K the units of a hidden layer, L the number of hidden layers, and R the number of masks,
each with its own ordering. A row takes :math:`R (2 D K + K^2 (L - 1) + D^2)` multiply-adds, the last term for direct
connections; half of them are masked, whatever the sizes. One of the four grows at a time, and the exponent is the slope
of the log time. It is compared with the slope of the log multiply-adds at the same sizes, which is not an integer where
two terms compete.

The time of an *exact* NLL is also measured for the paper's other systems. For RBM and DARN it is a sum over all states
of the hidden units, so that :math:`2^K` grows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from made.baselines.bipartite import CenteredBipartite, log_partition
from made.baselines.darn import DARNNetwork
from made.baselines.eonade import OrderlessNetwork
from made.baselines.nade import NADENetwork
from made.network.connectivity import Connectivities
from made.network.masked import Network
from made.network.threads import single_thread
from made.queries.ensemble import Ensemble
from made.queries.likelihood import log_prob

ROWS = 100  # the paper's batch
REPEATS = 15

# Every row of the table, and the series that measure it.
TABLE = [
    ("RBM 25 CD steps", "O(min(2^D K, D 2^K))", "2^K in RBM"),
    ("DARN", "O(2^K D)", "2^K in DARN"),
    ("NADE (fixed order)", "O(D K)", "K in NADE; D in NADE"),
    ("EoNADE 1hl, R ord.", "O(R D K)", "R in EoNADE 1hl"),
    ("EoNADE 2hl, R ord.", "O(R D K^2)", "K in EoNADE 2hl"),
    ("MADE 1hl, 1 ord.", "O(D K + D^2)", "K in 1hl; D in 1hl"),
    ("MADE 2hl, 1 ord.", "O(D K + K^2 + D^2)", "K in 2hl; D in 2hl"),
    ("MADE 1hl, R ord.", "O(R (D K + D^2))", "R in 1hl"),
    ("MADE 2hl, R ord.", "O(R (D K + K^2 + D^2))", "R in 2hl"),
]


@dataclass(frozen=True)
class Sizes:
    """The paper's symbols, whether there are direct connections A, and the system."""

    D: int
    K: int
    L: int = 1
    R: int = 1
    direct: bool = False
    system: Literal["MADE", "NADE", "EoNADE", "RBM", "DARN"] = "MADE"

    def exact(self) -> Callable[[Tensor], object]:
        """A function for the exact log p of rows, by an untrained network of these sizes."""
        D, K = self.D, self.K
        if self.system == "MADE":
            family = Connectivities(D, (K,) * self.L, masks=self.R, ordering="random")
            return partial(log_prob, Ensemble(Network(D, family, direct=self.direct)))
        if self.system == "NADE":
            return NADENetwork(D, K)
        if self.system == "EoNADE":
            network = OrderlessNetwork(D, (K,) * self.L)
            generator = torch.Generator().manual_seed(0)
            orderings = [torch.randperm(D, generator=generator) for _ in range(self.R)]
            return lambda rows: [network.log_prob(rows, ordering) for ordering in orderings]
        half = torch.full((D,), 0.5)
        if self.system == "DARN":
            return DARNNetwork(half, K).exact
        model = CenteredBipartite(half, K).snapshot()
        return lambda rows: model.neg_free_energy(rows) - log_partition(model, half, chains=0, temperatures=0).value


@dataclass(frozen=True)
class Series:
    """One symbol that grows, overriding ``base``; the other sizes are chosen so that its terms dominate."""

    name: str
    symbol: Literal["D", "K", "L", "R"]
    sizes: tuple[int, ...]
    base: Sizes

    def each(self) -> list[Sizes]:
        """The sizes of every network of the series."""
        return [Sizes(**asdict(self.base) | {self.symbol: size}) for size in self.sizes]

    def grown(self) -> list[int]:
        """The base of the power law: the sizes, or the numbers of states of that many units."""
        return [2**size for size in self.sizes] if self.name.startswith("2^") else list(self.sizes)


SERIES = [
    Series("K in 1hl", "K", (4096, 8192, 16384, 32768), Sizes(D=512, K=0)),
    Series("D in 1hl", "D", (2048, 2896, 4096, 5792, 8192), Sizes(D=0, K=256, direct=True)),
    Series("K in 2hl", "K", (2048, 2896, 4096, 5792, 8192), Sizes(D=64, K=0, L=2)),
    Series("D in 2hl", "D", (2048, 2896, 4096, 5792, 8192), Sizes(D=0, K=256, L=2, direct=True)),
    Series("L", "L", (2, 4, 8, 16), Sizes(D=64, K=1024)),
    Series("R in 1hl", "R", (2, 4, 8, 16, 32), Sizes(D=256, K=512, direct=True)),
    Series("R in 2hl", "R", (2, 4, 8, 16, 32), Sizes(D=256, K=512, L=2, direct=True)),
    Series("2^K in RBM", "K", (8, 10, 12, 14, 16), Sizes(D=512, K=0, system="RBM")),
    Series("2^K in DARN", "K", (9, 10, 11, 12, 13), Sizes(D=64, K=0, system="DARN")),
    Series("K in NADE", "K", (1024, 2048, 4096, 8192), Sizes(D=64, K=0, system="NADE")),
    Series("D in NADE", "D", (128, 256, 512, 1024), Sizes(D=0, K=512, system="NADE")),
    Series("R in EoNADE 1hl", "R", (2, 4, 8, 16), Sizes(D=64, K=512, system="EoNADE")),
    Series("K in EoNADE 2hl", "K", (512, 1024, 2048), Sizes(D=32, K=0, L=2, system="EoNADE")),
]


def operations(sizes: Sizes) -> int:
    """The multiply-adds of one row, masked ones included; for other systems than MADE, of the leading terms.

    Example:
        >>> operations(Sizes(D=3, K=4, L=2))
        40
        >>> operations(Sizes(D=3, K=4, L=2, R=10, direct=True))
        490
    """
    D, K = sizes.D, sizes.K
    if sizes.system in ("RBM", "DARN"):
        return D << K
    if sizes.system in ("NADE", "EoNADE"):
        return sizes.R * D * (2 * K + K**2 * (sizes.L - 1))
    return sizes.R * (2 * D * K + K**2 * (sizes.L - 1) + D**2 * sizes.direct)


def fit_power_law(sizes: ArrayLike, values: ArrayLike) -> tuple[float, float]:
    """The exponent of a power law and its standard error: least squares of log values on log sizes.

    Example:
        >>> exponent, error = fit_power_law([1, 2, 4], [3, 12, 48])
        >>> round(exponent, 6), round(error, 6)
        (2.0, 0.0)
    """
    x, y = np.log(np.asarray(sizes, dtype=float)), np.log(np.asarray(values, dtype=float))
    if len(x) < 3:
        raise ValueError(f"'sizes' should have at least 3 entries for a standard error, not {len(x)}.")
    x, y = x - x.mean(), y - y.mean()
    slope = (x @ y) / (x @ x)
    rest = y - slope * x
    return float(slope), math.sqrt((rest @ rest) / (len(x) - 2) / (x @ x))


def measure(
    keep: Callable[[dict[str, Any]], object],
    *,
    quick: bool = False,
    done: Container[str] = (),
    report: Callable[[str], object] = lambda line: None,
) -> None:
    """Measure every series on one thread; each can be written as JSON.

    Arguments:
        keep: called with each measured series.
        quick: use tiny networks, whose times are meaningless, as a test.
        done: the names of series that were measured before.
        report: called with a line about each series.
    """
    with single_thread():
        for each in SERIES:
            if each.name not in done:
                keep(_measure(_tiny(each) if quick else each, 2 if quick else REPEATS, report))


def _tiny(series: Series) -> Series:
    base = replace(series.base, D=series.base.D // 32, K=series.base.K // 32)
    few = series.symbol not in "DK" or series.name.startswith("2^")
    sizes = series.sizes[:3] if few else tuple(size // 32 for size in series.sizes)
    return replace(series, sizes=sizes, base=base)


def _measure(series: Series, repeats: int, report: Callable[[str], object]) -> dict[str, Any]:
    """The processor time of each size, the minimum over repeats, since other work only adds to it."""
    generator = torch.Generator().manual_seed(0)
    work = [(each.exact(), torch.rand(ROWS, each.D, generator=generator).round()) for each in series.each()]
    seconds = np.full((repeats + 1, len(work)), math.inf)
    for number in range(repeats + 1):
        # Interleave the sizes, so that a busy minute does not affect one of them only, in alternating order.
        for index in range(len(work))[:: 1 if number % 2 else -1]:
            exact, rows = work[index]
            start = time.thread_time()
            with torch.no_grad():
                exact(rows)
            seconds[number, index] = time.thread_time() - start
    least = seconds[1:].min(axis=0).tolist()  # the first round warms up
    exponent, error = fit_power_law(series.grown(), least)
    theory, _ = fit_power_law(series.grown(), [operations(sizes) for sizes in series.each()])
    report(f"{series.name}: exponent {exponent:.2f} ± {error:.2f}, theory {theory:.2f}")
    fixed = {name: value for name, value in asdict(series.base).items() if name != series.symbol}
    facts = {"name": series.name, "symbol": series.symbol, "fixed": fixed, "sizes": list(series.sizes)}
    return facts | {"seconds": least, "exponent": exponent, "stderr": error, "theory": theory}
