r"""log p(x) under one connectivity and under an ensemble; of part of a row, given another part; of each entry.

:func:`log_conditionals` gives every factor :math:`\log p(x_d \mid x_{<d})` of the paper's equation 4 in one pass under
one connectivity, and :func:`log_likelihood` their sum (equation 5), which training maximizes; both are differentiable.
:func:`log_prob` is the answer of the model: the mean of *probabilities* over the masks of an ensemble,

.. math:: \log p(x) = \log \frac{1}{R} \sum_r p_r(x).

In all of them NaN is a missing value: it is not asked for, and the answer is the likelihood of the other entries.
``given`` marks what is conditioned on. An any-order model, one of unlimited masks, answers every such question, because
any set of columns can be put first. A model with a finite list of masks answers only what its orderings allow, and
raises an error otherwise. Each answer is a proper distribution; the answers of an any-order model to different queries
come from different orderings, and agree only as far as training made them (section 4.2 of the paper).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.columns.group import Rows
from made.errors import QuestionError
from made.hints import hint
from made.network.connectivity import Connectivity
from made.network.layout import Layout
from made.network.masked import Network
from made.queries.batches import in_blocks
from made.queries.ensemble import Ensemble
from made.queries.evidence import Evidence, Given
from made.queries.incremental import factors
from made.queries.random import double
from made.queries.schedule import Pass, RowGroup

PREPARED = 4096  # rows whose input units and targets are computed for all masks at once


def mean_and_interval(values: Tensor) -> tuple[float, float]:
    """The mean, and the half-width of its 95 % confidence interval, 1.96 standard errors."""
    values = values.double()
    error = values.std().item() / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return values.mean().item(), 1.96 * error


def log_conditionals(
    network: Network,
    rows: Rows | Evidence,
    connectivity: int | Connectivity | Sequence[int] = 0,
    *,
    given: Given | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """log p(x_d | x_<d) of each entry under one connectivity, by one pass: the factors whose sum is log p(x).

    Shapes: (rows, columns) to (rows, columns); 0 for an entry that is missing or given.

    Arguments:
        network: the network.
        rows: the rows, NaN for a missing value; or evidence.
        connectivity: a connectivity or its number; or a number for each row, which takes a pass for each that differs.
        given: what is conditioned on: column names or numbers, or flags for each column or each entry.
        generator: the random numbers of dropout, if the network is in training mode.

    Example:
        >>> from made import Connectivities, Network
        >>> network = Network(3, Connectivities(3, (8,)))
        >>> bool(log_conditionals(network, [[0, 1, 1]]).sum(1).allclose(log_prob(Ensemble(network), [[0, 1, 1]])))
        True
    """
    return _grouped(network, rows, connectivity, given, generator, lambda layout, factors: layout.restore(factors))


def log_likelihood(
    network: Network,
    rows: Rows | Evidence,
    connectivity: int | Connectivity | Sequence[int] = 0,
    *,
    given: Given | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """log p of each row under one connectivity: the sum of :func:`log_conditionals`, with the same arguments."""
    return _grouped(network, rows, connectivity, given, generator, lambda layout, factors: factors.sum(dim=1))


def _grouped(
    network: Network,
    rows: Rows | Evidence,
    connectivity: int | Connectivity | Sequence[int],
    given: Given | None,
    generator: torch.Generator | None,
    finish: Callable[[Layout, Tensor], Tensor],
) -> Tensor:
    """One pass for each connectivity, its factors finished, and the rows put together again."""
    evidence = Evidence.of(network, rows, given)
    if isinstance(connectivity, np.integer):
        connectivity = int(connectivity)
    if isinstance(connectivity, (int, Connectivity)):
        layout = network.layout(connectivity)
        require_prefixes(network, evidence, layout.connectivity)
        return finish(layout, _factors(network, layout, evidence, network.training, generator))
    numbers = torch.as_tensor(connectivity)
    if numbers.shape != (len(evidence),) or (numbers.dtype.is_floating_point and len(numbers)):
        raise ValueError(f"'connectivity' should have {len(evidence)} whole numbers, one for each row.")
    require_prefixes(network, evidence, numbers)
    parts, order = [], []
    for number in numbers.unique().tolist() or [0]:
        which = (numbers == number).nonzero().squeeze(1)
        layout, some = network.layout(int(number)), evidence[which.to(evidence.values.device)]
        parts.append(finish(layout, _factors(network, layout, some, network.training, generator)))
        order.append(which)
    return torch.cat(parts).index_select(0, torch.cat(order).argsort().to(evidence.values.device))


def outputs(
    network: Network,
    layout: Layout,
    evidence: Evidence,
    arranged: Tensor | None = None,
    *,
    dropout: bool = False,
    generator: torch.Generator | None = None,
    coupled: bool = True,
) -> Tensor:
    """The output units of one pass, in the order of the layout. Shape: (rows, outputs).

    ``arranged`` are the values of the evidence in the order of the layout, if already computed.
    """
    observed = None if evidence.observed is None else layout.arrange(evidence.observed)
    # Where orderings are fixed, the given columns come first in them, and are seen like any other column.
    dense = evidence.given is not None and network.connectivities.any_order
    given = layout.arrange(evidence.given) if evidence.given is not None and dense else None
    values = layout.arrange(evidence.values) if arranged is None else arranged
    units = None if layout.sorted else evidence.inputs
    return network.run(
        layout,
        values,
        observed=observed,
        given=given,
        units=units,
        dropout=dropout,
        generator=generator,
        coupled=coupled,
    )


def _factors(
    network: Network,
    layout: Layout,
    evidence: Evidence,
    dropout: bool = False,
    generator: torch.Generator | None = None,
) -> Tensor:
    """The factors of one pass, in the order of the layout; 0 for an entry that is not asked for."""
    values, targets = layout.arrange(evidence.values), None if layout.sorted else evidence.targets
    units = outputs(network, layout, evidence, values, dropout=dropout, generator=generator)
    factors = layout.columns.log_prob(units, values, targets)
    if evidence.observed is None and evidence.given is None:
        return factors
    return factors.masked_fill(~layout.arrange(evidence.asked), 0)


def log_prob(
    ensemble: Ensemble,
    rows: Rows | Evidence,
    *,
    given: Given | None = None,
    asked_last: bool = True,
    batch_size: int = 500,
) -> Tensor:
    """log p of each row, of what is observed of it, or of one part given another. Shapes: (rows, columns) to (rows).

    Memory grows neither with the number of masks nor, apart from the answers, with the number of rows.

    Arguments:
        ensemble: the network and its masks.
        rows: the rows, NaN for a missing value; or evidence.
        given: what is conditioned on: column names or numbers, or flags for each column or each entry.
        asked_last: if something is given to an any-order model, put the columns that a row asks for last in the
            ordering, where all units serve them; rows are grouped by what they ask for. ``False`` takes one ordering
            for all rows: less accurate, but faster when rows ask for many different columns.
        batch_size: the number of rows in a pass.

    Example:
        >>> from made import Connectivities, Ensemble, Network
        >>> ensemble = Ensemble(Network(2, Connectivities(2, (4,), masks=None)))
        >>> worlds = [[0, 0], [0, 1], [1, 0], [1, 1]]
        >>> round(log_prob(ensemble, worlds).exp().sum().item(), 5)
        1.0
        >>> [round(total, 5) for total in log_prob(ensemble, worlds, given=[1]).exp().reshape(2, 2).sum(dim=0).tolist()]
        [1.0, 1.0]
    """
    network = ensemble.network
    evidence = Evidence.of(network, rows, given)
    if batch_size < 1:
        raise ValueError(f"'batch_size' should be at least 1, not {batch_size}.")
    with torch.no_grad():
        if not ensemble.any_order:
            return _prefix_log_prob(ensemble, evidence, batch_size).to(evidence.values.dtype)
        answer = evidence.values.new_empty(len(evidence))
        for group in ensemble.schedule.groups(evidence, asked_last=asked_last):
            some = evidence[group.rows]
            if group.incremental:
                answer[group.rows] = _incremental_log_mean(network, some, group, batch_size).to(answer.dtype)
                continue
            members = [(share, group.passes(number)) for number, share in group.shares.items()]
            stored = all(network.stores(each.connectivity) for _, passes in members for each in passes)
            for block, part in some.split(max(batch_size, PREPARED) if stored else max(len(some), 1)):
                part = part.prepared(network) if stored else part
                (mean,) = _log_means(network, part, members, [None], batch_size)
                answer[group.rows[block]] = mean.to(answer.dtype)
        if evidence.observed is None and evidence.given is None:
            return answer
        return answer.masked_fill(~evidence.asked.any(dim=1), 0)  # exactly, though weights hardly sum to one


def _prefix_log_prob(ensemble: Ensemble, evidence: Evidence, batch_size: int) -> Tensor:
    """The answer of a model of fixed orderings: p(asked, given) / p(given), both prefixes of every ordering."""
    network, numbers = ensemble.network, ensemble.numbers
    for number in numbers:
        require_prefixes(network, evidence, torch.full((len(evidence),), number))
    if len(numbers) == 1 and len(evidence) <= batch_size:
        layout = network.layout(numbers[0], rows=len(evidence))
        return network.threads.run(len(evidence), lambda: _factors(network, layout, evidence).sum(dim=1))
    members = ((1 / len(numbers), [Pass(number, None)]) for number in numbers)
    if evidence.given is None or len(numbers) == 1:  # under one mask, the product of the asked factors is the quotient
        (answer,) = _log_means(network, evidence, members, [None], batch_size)
        return answer
    plain = Evidence(evidence.values, evidence.observed)
    joint, condition = _log_means(network, plain, members, [None, evidence.given], batch_size)
    return joint - condition


def require_prefixes(network: Network, evidence: Evidence, connectivity: Connectivity | Tensor) -> None:
    """Refuse what fixed orderings do not allow: the given columns come first, then the asked, then the missing.

    ``connectivity`` is shared by all rows, or a number for each row.
    """
    family = network.connectivities
    if family.any_order or len(evidence) == 0 or (evidence.given is None and evidence.observed is None):
        return
    if isinstance(connectivity, Connectivity):
        orderings = torch.from_numpy(connectivity.ordering).expand(len(evidence), -1)
    else:
        numbers, which = connectivity.unique(return_inverse=True)
        orderings = torch.from_numpy(np.stack([family[number].ordering for number in numbers.tolist()]))[which]
    for flags, what in ((evidence.given, "given"), (evidence.observed, "observed")):
        if flags is None:
            continue
        positions = orderings.to(flags.device)
        wrong = (positions * flags).amax(dim=1) != flags.sum(dim=1)
        if wrong.any():
            row = int(wrong.nonzero()[0])
            names = network.columns.names
            latest = names[int((positions[row] * flags[row]).argmax())]
            missing = names[int(torch.where(flags[row], len(names) + 1, positions[row]).argmin())]
            raise QuestionError(
                f"'{latest}' is {what} but '{missing}', which comes before it in an ordering of this model, "
                "is not. A model whose orderings are fixed or a finite list answers only where the given columns come "
                "first in each of them, then those asked for, then the missing values. Remedy: train a model with "
                f"unlimited masks and resampled orderings ({hint(masks='unlimited', resample='both')}), which answers "
                "any such question.",
                row=row,
                column=latest,
            )


def _incremental_log_mean(network: Network, evidence: Evidence, group: RowGroup, batch_size: int) -> Tensor:
    """:func:`_log_means` of all that is asked for, one column at a time."""
    values = evidence.values
    total = values.new_full((len(values),), -math.inf, dtype=double(values))
    for number, share in group.shares.items():
        order, likelihood = group.order(number), torch.zeros_like(total)
        for rows, batch in evidence.split(batch_size):
            for _, factor in factors(network, batch, order):
                likelihood[rows] += factor
        torch.logaddexp(total, likelihood + math.log(share), out=total)
    return total


def _log_means(
    network: Network,
    evidence: Evidence,
    members: Iterable[tuple[float, Sequence[Pass]]],
    parts: Sequence[Tensor | None],
    batch_size: int,
) -> list[Tensor]:
    """The log of the mean probability over masks, in double precision, so that rounding does not accumulate over masks.

    ``members`` are the share of each mask, and its passes, whose factors are multiplied. There is one answer for each
    of ``parts``: flags of the entries to take the probability of, or ``None`` for all that is asked for.
    """
    values = evidence.values
    totals = [values.new_full((len(values),), -math.inf, dtype=double(values)) for _ in parts]
    for share, passes in members:
        sums = [torch.zeros_like(total) for total in totals]
        for connectivity, flags in passes:
            layout = network.layout(connectivity, rows=len(evidence))
            here = None if flags is None else layout.arrange(torch.from_numpy(flags).to(values.device))
            for rows, batch in evidence.split(batch_size):
                factors = network.threads.run(len(batch), partial(_factors, network, layout, batch))
                with network.threads.preferred():
                    for total, part in zip(sums, parts, strict=True):
                        chosen = factors if part is None else factors * layout.arrange(part[rows])
                        chosen = chosen if here is None else chosen.masked_fill(~here, 0)
                        # The quotient of two sums in single precision would lose too many digits.
                        total[rows] += chosen.sum(dim=1, dtype=None if len(parts) == 1 else double(values))
        for total, likelihood in zip(totals, sums, strict=True):
            torch.logaddexp(total, likelihood + math.log(share), out=total)
    return totals


@in_blocks
def score(ensemble: Ensemble, codes: NDArray[np.float64], given: Given | None = None) -> NDArray[np.floating[Any]]:
    """:func:`log_prob` of coded rows, as an array. Shapes: (rows, columns) to (rows)."""
    answer: NDArray[np.floating[Any]] = log_prob(ensemble, codes, given=given).cpu().numpy()
    return answer


@in_blocks
@torch.no_grad()
def surprise(ensemble: Ensemble, codes: NDArray[np.float64], given: Given | None = None) -> NDArray[np.float64]:
    r"""The surprise of each entry, :math:`-\log p(x_d \mid x_{<d})`, the mean over masks; NaN for a missing value.

    Shapes: (rows, columns) to (rows, columns). The sum over a row is the mean over masks of its NLL, an upper bound of
    the NLL of the ensemble. That of a column that is ``given`` is 0.

    Example:
        >>> from made import Connectivities, Ensemble, Network
        >>> ensemble = Ensemble(Network(2, Connectivities(2, (4,), masks=None), initialization="zero-output"))
        >>> surprise(ensemble, np.array([[1, np.nan]])).round(3)
        array([[0.693,   nan]])
    """
    network, total, evidence = ensemble.network, np.zeros(codes.shape), Evidence.of(ensemble.network, codes, given)
    for group in ensemble.schedule.groups(evidence):
        part, index = evidence[group.rows], group.rows.cpu().numpy()
        for number, share in group.shares.items():
            for connectivity, columns in group.passes(number):
                factors = log_conditionals(network, part, connectivity).cpu().numpy() * share
                total[index] -= factors if columns is None else np.where(columns, factors, 0)
    return np.where(np.isnan(codes), np.nan, total)
