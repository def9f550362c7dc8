r"""Denoising: the most likely or expected clean row, if each entry is wrong with a stated probability.

**Noise model.** Entry d of a row x is wrong with probability :math:`\epsilon_d`, independently of the others. A wrong
entry of a column with k values is any of the k - 1 others with equal probability; a wrong number is a draw from the
column's marginal :math:`m_d(y) = p(x_d = y)`:

.. math:: q(y_d \mid x_d) = (1 - \epsilon_d) [y_d = x_d] + \epsilon_d \cdot \begin{cases}
    [y_d \ne x_d] / (k - 1) & \text{a column with k values} \\ m_d(y_d) & \text{a column of numbers} \end{cases}

**Answer.** The posterior is :math:`p(x \mid y) \propto p(x) \prod_d q(y_d \mid x_d)`; the answer is its mode, or the
expected value of each entry. Missing values stay missing, and values that training never saw are left unchanged.

**Methods.** If all columns have lists of values and there are few possible rows, all of them are enumerated: this is
exact. Otherwise the conditionals :math:`p(x_d \mid x_{-d})` of an any-order model are used:

- the mode by coordinate ascent from y: in each step the entry that gains most changes, as long as the row becomes more
  likely. This finds a local optimum. A number is either kept or found wrong; a wrong number is missing to the other
  entries, so that nothing is inferred from a guess, and is replaced by its most likely value at the end.
- expected values by Gibbs sampling; the differences between chains give the standard error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.errors import QuestionError
from made.hints import hint
from made.parameters import check_integer
from made.queries.batches import in_blocks
from made.queries.conditional import Prediction, predictions
from made.queries.ensemble import Ensemble
from made.queries.evidence import Evidence
from made.queries.likelihood import log_prob
from made.queries.random import uniform

MOST_STATES = 4096
NEVER = -1e9  # log of zero; unlike -inf, it can be multiplied by zero


@dataclass(frozen=True)
class Gibbs:
    """The length of Gibbs sampling: ``chains`` of ``sweeps`` over all entries, the first ``burn_in`` discarded."""

    chains: int = 4
    sweeps: int = 25
    burn_in: int = 5

    def __post_init__(self) -> None:
        for name, least in (("chains", 2), ("sweeps", 1), ("burn_in", 0)):
            check_integer(name, getattr(self, name), least)
        if self.burn_in >= self.sweeps:
            raise ValueError(f"'burn_in' should be below 'sweeps', {self.sweeps}, not {self.burn_in}.")


@dataclass(frozen=True)
class Denoised:
    """Clean rows and their uncertainty; all arrays are (rows, columns), NaN for missing values.

    Attributes:
        codes: the clean rows. For ``expected=True``, the mean of a number, and the most likely value of other columns.
        wrong: the probability that the entry was wrong; at a local optimum, given all other clean entries.
        error: the standard error of ``wrong``: 0 if it is exact, NaN for a local optimum.
        value_error: the standard error of an expected number, NaN elsewhere.
        changed: whether the entry differs from the noisy one.
        method: ``"exact"``, ``"local optimum"`` or ``"Gibbs sampling"``.
    """

    codes: NDArray[np.float64]
    wrong: NDArray[np.float64]
    error: NDArray[np.float64]
    value_error: NDArray[np.float64]
    changed: NDArray[np.bool_]
    method: str


@in_blocks
@torch.no_grad()
def denoise(
    ensemble: Ensemble,
    codes: NDArray[np.float64],
    error: NDArray[np.float64],
    *,
    expected: bool = False,
    gibbs: Gibbs | None = None,
    most_states: int = MOST_STATES,
    generator: torch.Generator | None = None,
) -> Denoised:
    """Clean rows.

    Arguments:
        ensemble: the network and its masks.
        codes: the noisy rows, NaN for a missing value, (rows, columns).
        error: the probability that an entry of each column is wrong, (columns).
        expected: the expected value of each entry instead of the most likely row.
        gibbs: the length of Gibbs sampling.
        most_states: the largest number of possible rows that is enumerated.
        generator: the random generator of Gibbs sampling.

    Example:
        >>> from made import Connectivities, Ensemble, Network
        >>> ensemble = Ensemble(Network(2, Connectivities(2, (4,), masks=None), initialization="zero-output"))
        >>> denoise(ensemble, np.array([[1.0, 0.0]]), np.array([0.1, 0.2])).wrong.round(3)
        array([[0.1, 0.2]])
    """
    counts = ensemble.cardinalities
    few = all(counts) and math.prod(counts) <= most_states
    if not few and not ensemble.any_order:
        raise QuestionError(
            "denoising rows of many columns, or of numbers, needs a model that answers any question: train one with "
            f"unlimited masks and resampled orderings ({hint(masks='unlimited', resample='both')})."
        )
    noisy = _Noisy.of(ensemble, codes, error, counts)
    if few:
        return _enumerate(noisy, expected)
    return _sample(noisy, gibbs or Gibbs(), generator) if expected else _ascend(noisy)


@dataclass(frozen=True)
class _Noisy:
    """Noisy rows under the noise model.

    ``values`` are coded, 0 for missing values, (rows, columns); ``unlike`` is the log probability of a wrong entry's
    value, log 1/(k - 1) or log m_d(y), (rows, columns).
    """

    ensemble: Ensemble
    codes: NDArray[np.float64]
    values: Tensor
    observed: Tensor
    unlike: Tensor
    right: Tensor  # log(1 - error), (columns)
    wrong: Tensor  # log(error), (columns)
    counts: Sequence[int]  # the number of values of each column, 0 for numbers

    @classmethod
    def of(
        cls, ensemble: Ensemble, codes: NDArray[np.float64], error: NDArray[np.float64], counts: Sequence[int]
    ) -> _Noisy:
        sizes = np.array(counts)
        foreign = (sizes > 0) & ~((codes >= 0) & (codes < sizes) & (codes == np.floor(codes)))
        codes = np.where(foreign, np.nan, codes)
        evidence = Evidence.of(ensemble.network, codes)
        values, observed = evidence.values, evidence.is_observed
        chance = torch.from_numpy(np.where(sizes == 1, 0.0, error)).to(values)  # a column of one value cannot be wrong
        unlike = torch.zeros_like(values)
        nothing = Evidence(torch.zeros_like(values[:1]), torch.zeros_like(observed[:1]))
        for d, size in enumerate(counts):
            if size:
                unlike[:, d] = -math.log(max(size - 1, 1))
            else:
                ((_, marginal),) = predictions(ensemble, nothing, d)
                unlike[:, d] = marginal[torch.zeros_like(values[:, d], dtype=torch.long)].log_prob(values[:, d])
        right, wrong = (each.log().clamp(min=NEVER) for each in (1 - chance, chance))
        return cls(ensemble, codes, values, observed, unlike, right, wrong, counts)

    def __getitem__(self, rows: Tensor) -> _Noisy:
        parts = self.values[rows], self.observed[rows], self.unlike[rows]
        return replace(self, codes=self.codes[rows.cpu().numpy()], values=parts[0], observed=parts[1], unlike=parts[2])

    @property
    def numbers(self) -> Tensor:
        """Flags of the columns of numbers, (columns)."""
        return torch.tensor([size == 0 for size in self.counts], device=self.values.device)

    @property
    def given_codes(self) -> Tensor:
        """The noisy rows as the table has them, 0 for missing values, (rows, columns)."""
        return torch.from_numpy(np.where(np.isnan(self.codes), 0, self.codes)).to(self.values.device)

    def channel(self, d: int, rows: Tensor) -> Tensor:
        """log q(y_d | v) for each value v of the column; 0 for a missing value. Shape: (rows, values)."""
        shape = (len(rows), self.counts[d])
        answer = (self.wrong[d] + self.unlike[rows, d]).unsqueeze(1).expand(shape).clone()
        answer.scatter_(1, self.values[rows, d].long().unsqueeze(1), self.right[d].expand(len(rows), 1))
        return answer.masked_fill(~self.observed[rows, d].unsqueeze(1), 0)

    def result(self, codes: Tensor, wrong: Tensor, error: Tensor, value_error: Tensor, method: str) -> Denoised:
        """Clean rows; missing values stay missing."""
        parts = [codes, wrong, error, value_error]
        shown = [each.cpu().double().masked_fill(~self.observed.cpu(), torch.nan).numpy() for each in parts]
        changed = (shown[0] != self.codes) & ~np.isnan(self.codes)
        return Denoised(shown[0], shown[1], shown[2], shown[3], changed, method)


def _enumerate(noisy: _Noisy, expected: bool) -> Denoised:
    """By all possible rows: values (states, columns), the same one-hot (states, values), and log p (states)."""
    counts, like = noisy.counts, noisy.values
    states = torch.cartesian_prod(*(torch.arange(size) for size in counts)).reshape(-1, len(counts)).to(like)
    log_p = log_prob(noisy.ensemble, states).double()
    flags = [states[:, d, None] == torch.arange(size, device=like.device) for d, size in enumerate(counts)]
    indicators = torch.cat(flags, dim=1).double()
    clean, wrong = torch.zeros_like(like), torch.zeros_like(like, dtype=torch.float64)
    patterns, pattern = noisy.observed.unique(dim=0, return_inverse=True)
    for index, seen in enumerate(patterns):
        if not seen.any():
            continue  # nothing is observed
        # States that agree in the observed columns are one outcome: their probabilities add up.
        _, same = states[:, seen].unique(dim=0, return_inverse=True)
        first = torch.full((int(same.max()) + 1,), len(same), device=same.device)
        first = first.scatter_reduce(0, same, torch.arange(len(same), device=same.device), "amin")
        for part in (pattern == index).nonzero().squeeze(1).split(max(1, (1 << 22) // len(states))):
            channel = torch.cat([noisy.channel(d, part) for d in range(len(counts))], dim=1).double()
            posterior = (log_p + channel @ indicators.t()).softmax(dim=1)  # (rows, states)
            marginals = (posterior @ indicators).split(list(counts), dim=1)
            if not expected:
                together = torch.zeros(len(part), len(first), dtype=torch.float64, device=same.device)
                clean[part] = states[first[together.index_add_(1, same, posterior).argmax(dim=1)]]
            for d, marginal in enumerate(marginals):
                kept = marginal.gather(1, noisy.values[part, d].long().unsqueeze(1)).squeeze(1)
                wrong[part, d] = (1 - kept).clamp(0, 1)
                if expected:
                    clean[part, d] = marginal.argmax(dim=1).to(clean.dtype)
    nan = torch.full_like(wrong, torch.nan)
    return noisy.result(clean, wrong, torch.zeros_like(wrong), nan, "exact")


def _entries(noisy: _Noisy, values: Tensor, seen: Tensor, d: int) -> Iterator[tuple[Tensor, Prediction]]:
    """The distribution of column d given what is seen of the others, in the rows that observe it."""
    rows = noisy.observed[:, d].nonzero().squeeze(1)
    if len(rows):
        for which, prediction in predictions(noisy.ensemble, Evidence(values[rows], seen[rows]), d):
            yield rows[which], prediction


def _values_of(prediction: Prediction, size: int) -> Tensor:
    """log p of each value. Shape: (rows, values)."""
    return prediction.probabilities(size).clamp(min=1e-30).log()


def _number_scores(noisy: _Noisy, rows: Tensor, d: int, prediction: Prediction) -> tuple[Tensor, Tensor]:
    """The log posterior weights of a number being right and being wrong."""
    right = noisy.right[d] + prediction.log_prob(noisy.values[rows, d])
    return right, noisy.wrong[d] + noisy.unlike[rows, d]


def _ascend(noisy: _Noisy) -> Denoised:
    values, seen, chance = _climb(noisy)
    gone = noisy.observed & ~seen
    codes = torch.where(noisy.numbers & ~gone, noisy.given_codes, noisy.ensemble.network.columns.outer(values).double())
    nan = torch.full_like(chance, torch.nan)
    return noisy.result(codes, chance, nan, nan, "local optimum")


def _climb(noisy: _Noisy) -> tuple[Tensor, Tensor, Tensor]:
    """A local optimum: the values, which numbers are seen, and the probability that each entry was wrong.

    A number that is not seen has its most likely value given all that is seen.
    """
    values, seen = noisy.values.clone(), noisy.observed.clone()
    gains, best, chance = torch.zeros_like(values), values.clone(), torch.zeros_like(values)
    numbers = noisy.numbers
    refused = torch.zeros_like(seen)
    stale = torch.arange(len(values), device=values.device)
    objective = _objective(noisy, values, seen)
    while True:
        if len(stale):
            gains[stale], best[stale], chance[stale] = _gains(noisy[stale], values[stale], seen[stale])
            refused[stale] = False
        gain, column = gains.masked_fill(refused, 0).max(dim=1)
        rows = (gain > 1e-6).nonzero().squeeze(1)
        if not len(rows):
            break
        column, one = column[rows], torch.arange(len(rows), device=rows.device)
        new_values, new_seen = values[rows], seen[rows]
        new_values[one, column] = best[rows, column]
        new_seen[one, column] ^= numbers[column]
        # The conditionals of an any-order model need not agree with its joint probability. The latter decides: it grows
        # with each step by more than rounding, so that the ascent ends.
        new_objective = _objective(noisy[rows], new_values, new_seen)
        better = new_objective > objective[rows] + 1e-4
        refused[rows[~better], column[~better]] = True
        stale = rows[better]
        values[stale], seen[stale], objective[stale] = new_values[better], new_seen[better], new_objective[better]
    gone = noisy.observed & ~seen
    for d in gone.any(dim=0).nonzero().squeeze(1).tolist():
        lack = gone[:, d].nonzero().squeeze(1)
        for which, prediction in predictions(noisy.ensemble, Evidence(values[lack], seen[lack]), d):
            values[lack[which], d] = prediction.mode().to(values)
    return values, seen, chance


def _gains(noisy: _Noisy, values: Tensor, seen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gain of each entry's best value, that value, and the probability that the entry was wrong.

    A number has two states, seen and not seen.
    """
    gains, best, chance = torch.zeros_like(values), values.clone(), torch.zeros_like(values)
    for d, size in enumerate(noisy.counts):
        for rows, prediction in _entries(noisy, values, seen, d):
            if size:
                scores = _values_of(prediction, size) + noisy.channel(d, rows)
                most, value = scores.max(dim=1)
                gains[rows, d] = most - scores.gather(1, values[rows, d].long().unsqueeze(1)).squeeze(1)
                best[rows, d] = value.to(values.dtype)
                kept = scores.softmax(dim=1).gather(1, noisy.values[rows, d].long().unsqueeze(1)).squeeze(1)
                chance[rows, d] = (1 - kept).clamp(0, 1)
            else:
                right, wrong = _number_scores(noisy, rows, d, prediction)
                gains[rows, d] = torch.where(seen[rows, d], wrong - right, right - wrong)
                chance[rows, d] = torch.sigmoid(wrong - right)
    return gains, best, chance


def _objective(noisy: _Noisy, values: Tensor, seen: Tensor) -> Tensor:
    """log p(x) + log q(y | x), with wrong numbers integrated out. Shape: (rows)."""
    everything = torch.arange(len(values), device=values.device)
    total = log_prob(noisy.ensemble, Evidence(values.masked_fill(~seen, 0), None if seen.all() else seen))
    for d, size in enumerate(noisy.counts):
        if size:
            said = noisy.channel(d, everything).gather(1, values[:, d].long().unsqueeze(1)).squeeze(1)
        else:
            said = torch.where(seen[:, d], noisy.right[d], noisy.wrong[d] + noisy.unlike[:, d])
            said = said.masked_fill(~noisy.observed[:, d], 0)
        total = total + said
    return total


def _sample(noisy: _Noisy, gibbs: Gibbs, generator: torch.Generator | None) -> Denoised:
    rows, columns = noisy.values.shape
    chains, kept_sweeps = gibbs.chains, gibbs.sweeps - gibbs.burn_in
    index = torch.arange(rows, device=noisy.values.device).repeat(chains)  # chain by chain
    many = noisy[index]
    values = _climb(noisy)[0][index]  # a chain that starts far from the likely rows may not reach them
    wrong = torch.zeros_like(values, dtype=torch.float64)
    instead = torch.zeros_like(wrong)  # of a number: the expected replacement, times the probability of one
    marginals = [torch.zeros(rows, size, dtype=torch.float64, device=values.device) for size in noisy.counts]
    for sweep in range(gibbs.sweeps):
        for d in torch.randperm(columns, generator=generator, device=values.device).tolist():
            noise = uniform(3, len(values), like=values, generator=generator)
            use = sweep >= gibbs.burn_in
            for some, prediction in _entries(many, values, many.observed, d):
                if size := noisy.counts[d]:
                    posterior = (_values_of(prediction, size) + many.channel(d, some)).softmax(dim=1)
                    below = posterior.cumsum(dim=1)[:, :-1]
                    values[some, d] = (noise[0, some, None].to(below) >= below).sum(dim=1).to(values.dtype)
                    if use:
                        kept = posterior.gather(1, many.values[some, d].long().unsqueeze(1)).squeeze(1)
                        wrong[some, d] += (1 - kept).clamp(0, 1)
                        marginals[d].index_add_(0, index[some], posterior.double())
                    continue
                right, other = _number_scores(many, some, d, prediction)
                chance = torch.sigmoid(other - right)
                drawn = prediction.draw(noise[1:, some])
                values[some, d] = torch.where(noise[0, some].to(chance) < chance, drawn, many.values[some, d])
                if use:
                    wrong[some, d] += chance
                    instead[some, d] += chance.double() * prediction.kind.outer(prediction.mean()).double()
    wrong, instead = (each.div_(kept_sweeps).unflatten(0, (chains, rows)) for each in (wrong, instead))
    was, numbers = noisy.given_codes, noisy.numbers
    means = instead + (1 - wrong) * was
    codes = torch.where(numbers, means.mean(dim=0), was)
    for d, size in enumerate(noisy.counts):
        if size:
            codes[:, d] = marginals[d].argmax(dim=1).double()
    value_error = torch.where(numbers, means.std(dim=0) / math.sqrt(chains), torch.nan)
    return noisy.result(codes, wrong.mean(dim=0), wrong.std(dim=0) / math.sqrt(chains), value_error, "Gibbs sampling")
