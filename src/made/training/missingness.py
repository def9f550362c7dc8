"""Learning which values of a row are missing, given the values.

One logistic regression for each column that has missing values (:mod:`made.queries.missingness`), in ascending order of
their number. The features of a column are the visible values of columns with fewer missing values, and all values of
columns with more, whose missing values are imputed by the network. The L2 penalty is chosen by cross-validation. If a
single feature separates missing from observed values (two columns that are missing together, or a column that is
missing for one value of another), the rule is exact. The numbers of rows and features are bounded.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.queries.ensemble import Ensemble
from made.queries.evidence import Evidence
from made.queries.imputation import fill
from made.queries.missingness import NUMBERS, Features, Missingness
from made.streams import MISSING, random_bits
from made.training.order import some_rows

MOST_ROWS, FEWEST_ROWS = 10_000, 2_000  # to learn from; fewer for tables of many columns
ROWS_BY_COLUMNS = 60_000
MOST_FEATURES, FEWEST_FEATURES = 64, 16
FEATURES_BY_COLUMNS = 4_000
HANDFUL = 5  # rows; with fewer missing (or observed) values, a column has a constant rate
PENALTIES = (30.0, 3.0, 0.3, 0.03)  # of the squared weights of input units
FLAG_PENALTY = 0.01  # of the weights of flags: columns are missing together more often than by chance
FOLDS = 3
STEPS = 30
CERTAIN = 40.0  # a logit whose probability is 1 in double precision
LEAST_VARIANCE = 1e-12  # of a feature
LEAST_GAP = 1e-6  # between the values of a feature that separates missing from observed values


def learn_missingness(ensemble: Ensemble, rows: Evidence, seed: int) -> Missingness:
    """The distribution of the missing values of training rows, a function of the ensemble, the rows and the seed.

    Of a table with more than 2**20 rows, an evenly spread subset is used.
    """
    columns, rows = ensemble.network.columns, Evidence(rows.values, rows.observed)
    rows = rows[some_rows(len(rows))]
    missing = torch.zeros(rows.values.shape, dtype=torch.bool) if rows.observed is None else ~rows.observed.cpu()
    counts = missing.sum(dim=0)
    decided = [d for d in counts.argsort(stable=True).tolist() if counts[d]]
    width = min(MOST_FEATURES, max(FEWEST_FEATURES, FEATURES_BY_COLUMNS // max(1, len(decided))))
    width = min(width, columns.inputs + len(decided))
    features = torch.zeros(len(decided), width, dtype=torch.long)
    weights, biases = torch.zeros(len(decided), width).double(), torch.zeros(len(decided)).double()
    found = Missingness(torch.tensor(decided, dtype=torch.long), features, weights, biases)
    if not decided:
        return found
    generator = torch.Generator(rows.values.device).manual_seed(random_bits(seed, MISSING))
    most = min(MOST_ROWS, max(FEWEST_ROWS, ROWS_BY_COLUMNS // len(decided)), NUMBERS // (columns.inputs + len(decided)))
    chosen, weight = _choose(missing.any(dim=1), most, random_bits(seed, MISSING, number=1))
    hidden = missing[chosen][:, decided]
    visible = _features(ensemble, rows[chosen.to(rows.values.device)], decided, generator)
    related = _Related(torch.cat([visible.table[:, : visible.flags], hidden.double()], dim=1), weight)
    for index, d in enumerate(decided):
        flags, allowed = hidden[:, index], torch.ones(visible.table.shape[1], dtype=torch.bool)
        allowed[visible.own[index]] = allowed[visible.flags + index :] = False
        few = min(int(flags.sum()), int((~flags).sum())) < HANDFUL
        if few:
            allowed[: visible.flags] = False
        best = related.most(flags, allowed, width)
        rule = _separating(visible.table[:, best], flags)
        if rule is not None:
            place, weights[index, 0], biases[index] = rule
            features[index, 0] = best[place]
        elif few:
            share = int(counts[d]) / len(missing)
            biases[index] = math.log(share / (1 - share)) if share < 1 else CERTAIN
        else:
            fitted = _regression(visible.table[:, best], flags.double(), weight, best >= visible.flags)
            features[index, : len(best)], weights[index, : len(best)], biases[index] = best, fitted[1:], fitted[0]
        visible.hide(index, flags)
    return found


def _choose(incomplete: Tensor, most: int, seed: int) -> tuple[Tensor, Tensor]:
    """Rows to learn from, up to half of them complete where there are more than that, and how many each stands for."""
    generator = torch.Generator().manual_seed(seed)
    parts = [flags.nonzero().squeeze(1) for flags in (incomplete, ~incomplete)]
    taken = min(len(parts[0]), max(most // 2, most - len(parts[1])))
    sizes = (taken, min(len(parts[1]), most - taken))
    chosen = [
        part[torch.randperm(len(part), generator=generator)[:size]] for part, size in zip(parts, sizes, strict=True)
    ]
    weights = [torch.full((size,), len(part) / max(size, 1)).double() for part, size in zip(parts, sizes, strict=True)]
    return torch.cat(chosen), torch.cat(weights)


def _features(ensemble: Ensemble, rows: Evidence, decided: list[int], generator: torch.Generator) -> Features:
    """The features of rows whose missing values are drawn by the network."""
    network = ensemble.network
    codes: NDArray[np.float64] = (
        network.columns.outer(rows.values.masked_fill(~rows.is_observed, torch.nan)).double().cpu().numpy()
    )
    drawn, _ = fill(ensemble, codes, "sample", generator=generator)
    return Features(network.columns, Evidence.of(network, drawn[0]).values, decided)


class _Related:
    """The features of rows; selects the features that correlate most with the flags of a column."""

    def __init__(self, table: Tensor, weight: Tensor) -> None:
        self.table, self.share = table, weight / weight.sum()
        self.variance = self.share @ (table - self.share @ table).square()

    def most(self, flags: Tensor, allowed: Tensor, count: int) -> Tensor:
        """The allowed features that are most correlated with the flags, up to ``count``; none that is constant."""
        allowed = allowed & (self.variance > LEAST_VARIANCE)
        centred = flags.double() - self.share @ flags.double()
        score = ((self.share * centred) @ self.table).square() / self.variance
        score = score.masked_fill(~allowed, -1)
        return score.argsort(descending=True, stable=True)[: min(count, int(allowed.sum()))].sort().values


def _separating(table: Tensor, flags: Tensor) -> tuple[int, float, float] | None:
    """A feature that separates flagged rows from the others, with a weight and a bias that make this a rule."""
    if not table.shape[1] or bool(flags.all()) or not bool(flags.any()):
        return None
    mine, others = table[flags], table[~flags]
    above, below = mine.amin(dim=0) - others.amax(dim=0), others.amin(dim=0) - mine.amax(dim=0)
    gap = torch.maximum(above, below)
    best = int((gap / (table.amax(dim=0) - table.amin(dim=0)).clamp(min=LEAST_GAP)).argmax())
    if gap[best] < LEAST_GAP:
        return None
    low, high = (others, mine) if above[best] > 0 else (mine, others)
    middle = (low[:, best].amax() + high[:, best].amin()) / 2
    slope = 2 * CERTAIN / gap[best] * (1 if above[best] > 0 else -1)
    return best, float(slope), float(-slope * middle)


def _regression(table: Tensor, flags: Tensor, weight: Tensor, are_flags: Tensor) -> Tensor:
    """The bias and weights of a logistic regression, with the penalty that predicts held-out rows best.

    The bias has no penalty, and features that ``are_flags`` have one of their own.
    """
    penalties = [torch.where(are_flags, FLAG_PENALTY, penalty).double() for penalty in PENALTIES]
    penalties = [torch.cat([penalty.new_tensor([1e-6]), penalty]) for penalty in penalties]
    table = torch.cat([table.new_ones(len(table), 1), table], dim=1)
    # Stratified: the rows with and without a flag are dealt in turn.
    fold = torch.empty(len(table), dtype=torch.long)
    fold[flags.argsort(stable=True)] = torch.arange(len(table)) % FOLDS
    loss = torch.zeros(len(PENALTIES), dtype=torch.float64)
    for k in range(FOLDS):
        train, test, found = fold != k, fold == k, table.new_zeros(table.shape[1])
        for index, penalty in enumerate(penalties):
            found = _newton(table[train], flags[train], weight[train], penalty, found)
            loss[index] += _loss(table[test], flags[test], weight[test], 0 * penalty, found)
    return _newton(table, flags, weight, penalties[int(loss.argmin())], table.new_zeros(table.shape[1]))


def _loss(table: Tensor, flags: Tensor, weight: Tensor, penalty: Tensor, found: Tensor) -> Tensor:
    logits = table @ found
    return weight @ (torch.nn.functional.softplus(logits) - flags * logits) + penalty @ found.square() / 2


def _newton(table: Tensor, flags: Tensor, weight: Tensor, penalty: Tensor, start: Tensor) -> Tensor:
    """The minimum of the penalized loss, by Newton's method with halved steps."""
    found, loss = start, _loss(table, flags, weight, penalty, start)
    for _ in range(STEPS):
        chance = (table @ found).sigmoid()
        gradient = table.t() @ (weight * (chance - flags)) + penalty * found
        curvature = table.t() @ (table * (weight * chance * (1 - chance)).unsqueeze(1)) + penalty.diag()
        step, before = torch.linalg.solve(curvature, gradient), loss
        for _ in range(STEPS):
            tried = _loss(table, flags, weight, penalty, found - step)
            if tried <= before:
                found, loss = found - step, tried
                break
            step = step / 2
        if before - loss <= 1e-6 * (1 + abs(float(loss))):
            break
    return found
