"""Statistics of a comparison: ranks, paired differences, overlapping intervals, and conclusions in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from scipy import stats

from made.baselines.protocol import Floats
from made.compare.result import Result

FEW = 30  # test rows below which a normal interval is rough

Verdict = Literal["worse", "not told apart", "unknown"]


@dataclass(frozen=True)
class Difference:
    """A system compared with the best one on the same test rows.

    Attributes:
        name: of the system.
        best: name of the best system.
        nll: the excess of its NLL over the best one.
        ci95: half-width of the 95 % interval of the paired difference.
        overlap: whether the intervals of the two NLLs overlap.
        verdict: ``"worse"``, ``"not told apart"``, or ``"unknown"`` if only a bound is known.
    """

    name: str
    best: str
    nll: float
    ci95: float
    overlap: bool
    verdict: Verdict


def half_width(values: Floats, *errors: float) -> float:
    """Half-width of the 95 % interval of a mean, including independent standard errors from other sources."""
    return 1.96 * math.hypot(float(stats.sem(values)), *errors)


def ranked(results: Sequence[Result]) -> list[Result]:
    """The best first; failures last."""
    return sorted(results, key=lambda each: math.inf if each.error else each.nll)


def differences(results: Sequence[Result]) -> list[Difference]:
    """The paired difference between each system and the best one, the closest first.

    Example:
        >>> import numpy as np
        >>> some = Result("a", "a", 1.0, 0.98, "exact", 0.0, log_prob=np.array([0.0, -1.0, -2.0]))
        >>> more = Result("b", "b", 1.5, 0.98, "exact", 0.0, log_prob=np.array([-0.5, -1.5, -2.5]))
        >>> differences([some, more])
        [Difference(name='b', best='a', nll=0.5, ci95=0.0, overlap=True, verdict='worse')]
    """
    scored = [each for each in ranked(results) if not each.error]
    found = []
    for each in scored[1:]:
        best = scored[0]
        lead = best.log_prob - each.log_prob
        nll, half = float(lead.mean()), half_width(lead, best.standard_error, each.standard_error)
        verdict: Verdict = "worse" if nll > half else "not told apart"
        if each.kind == "bound":  # its true NLL may be lower than the best
            verdict = "unknown"
        found.append(Difference(each.name, best.name, nll, half, _overlap(best, each), verdict))
    return found


def overlaps(results: Sequence[Result]) -> list[tuple[str, str]]:
    """The pairs of systems whose 95 % intervals overlap, the better one first."""
    scored = [each for each in ranked(results) if not each.error]
    return [(one.name, other.name) for one, other in combinations(scored, 2) if _overlap(one, other)]


def _overlap(one: Result, other: Result) -> bool:
    """Whether two intervals overlap; the interval of a bound has no lower end."""
    lows = [-math.inf if each.kind == "bound" else each.nll - each.ci95 for each in (one, other)]
    return max(lows) <= min(each.nll + each.ci95 for each in (one, other))


def decimals(half_widths: Sequence[float]) -> int:
    """The number of decimals, two to four, that shows two digits of the narrowest interval.

    Example:
        >>> decimals([0.48, 0.53]), decimals([0.0021, 0.48]), decimals([])
        (2, 4, 2)
    """
    narrowest = min((half for half in half_widths if half > 0), default=1.0)
    return min(max(1 - math.floor(math.log10(narrowest)), 2), 4)


def sentences(results: Sequence[Result], test: int) -> list[str]:
    """The conclusions in words, from results on ``test`` test rows."""
    scored = [each for each in ranked(results) if not each.error]
    failed = [f"{each.name} failed: {each.error}" for each in results if each.error]
    if not scored:
        return failed
    best, against = scored[0], differences(results)
    own, places = decimals([each.ci95 for each in scored]), decimals([each.ci95 for each in against])
    said = [
        f"Best: {best.name}, with an NLL of {'at most ' if best.kind == 'bound' else ''}{best.nll:.{own}f} ± "
        f"{best.ci95:.{own}f} nats ({best.known}) on {test:,} test rows."
    ]
    for verdict, text in (
        ("not told apart", "Not told apart from the best (the interval of the paired difference contains 0): "),
        ("worse", "Worse than the best by the paired difference: "),
        ("unknown", "Not known to be worse than the best, because only an upper bound on the NLL is known: "),
    ):
        if some := [each for each in against if each.verdict == verdict]:
            by = [f"{each.name} by {each.nll:.{places}f} ± {each.ci95:.{places}f}" for each in some]
            said.append(f"{text}{', '.join(by)}.")
    if len(scored) > 1:
        others = {one.name: [each for name, each in overlaps(results) if name == one.name] for one in scored}
        pairs = "; ".join(f"{name} with {', '.join(some)}" for name, some in others.items() if some)
        said.append(f"Overlapping 95 % intervals: {pairs}." if pairs else "No 95 % intervals overlap.")
    if stopped := ", ".join(each.name for each in scored if each.stopped):
        limit = "Training reached its time limit, perhaps before convergence"
        said.append(f"{limit}: {stopped}. A larger budget may help.")
    if test < FEW:
        said.append(f"With only {test} test rows, intervals are rough: at least {FEW} are recommended.")
    said += [f"{each.name}: {each.remark}" for each in scored if each.remark]
    return said + failed
