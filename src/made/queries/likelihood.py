r"""log p(x): one connectivity, an ensemble, part of a row, one part given another.

:func:`log_conditionals` is one pass under one connectivity, every factor by itself, and :func:`log_likelihood` their
sum, what training maximises; both are differentiable. :func:`log_prob` is the answer of the model, the ensemble: the
mean over its connectivities of the *probabilities*,

.. math:: \log p(x) = \log \frac{1}{R} \sum_r p_r(x).

In all of them, an entry that is NaN is a hole: it is not asked for, and the answer is the likelihood of the others.
``given`` marks what is conditioned on. A model whose masks are unlimited answers any such question, because any set of
columns can be put first. One with a finite list answers what its orderings allow, and says so otherwise. Each answer
is a proper distribution; the answers of an any-order model to different questions come from different orderings, and
agree only as far as training made them (section 4.2 of the paper).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

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
from made.queries.evidence import Evidence, Given, arrangements
from made.queries.incremental import factors

Pass: TypeAlias = tuple[int | Connectivity, NDArray[np.bool_] | None]

__all__ = ["log_conditionals", "log_likelihood", "log_prob", "mean_and_interval"]


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

    Shapes: (rows, columns) to (rows, columns); 0 for an entry that is a hole or given.

    Arguments:
        network: the network.
        rows: the rows; or evidence, which is checked already.
        connectivity: a connectivity or its number; or a number for each row, which takes a pass for each that differs.
        given: what is conditioned on: column names or numbers, or flags for each column or each entry.
        generator: the random numbers of dropout, if the network is in training mode.

    Example:
        >>> from made import Connectivities, Network
        >>> network = Network(3, Connectivities(3, (8,)))
        >>> bool(log_conditionals(network, [[0, 1, 1]]).sum(1).allclose(log_prob(network, [[0, 1, 1]])))
        True
    """
    evidence = Evidence.of(network, rows, given)
    return _grouped(network, evidence, connectivity, lambda layout, factors: layout.restore(factors), generator)


def log_likelihood(
    network: Network,
    rows: Rows | Evidence,
    connectivity: int | Connectivity | Sequence[int] = 0,
    *,
    given: Given | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """log p of each row under one connectivity: the sum of :func:`log_conditionals`, with the same arguments."""
    evidence = Evidence.of(network, rows, given)
    return _grouped(network, evidence, connectivity, lambda layout, factors: factors.sum(dim=1), generator)


def _grouped(
    network: Network,
    evidence: Evidence,
    connectivity: int | Connectivity | Sequence[int],
    finish: Callable[[Layout, Tensor], Tensor],
    generator: torch.Generator | None,
) -> Tensor:
    """One pass for each connectivity, its factors finished, and the rows put together again."""
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


def _factors(
    network: Network,
    layout: Layout,
    evidence: Evidence,
    dropout: bool = False,
    generator: torch.Generator | None = None,
) -> Tensor:
    """The factors of one pass, in the order of the layout; 0 for an entry that is not asked for."""
    values = layout.arrange(evidence.values)
    observed = None if evidence.observed is None else layout.arrange(evidence.observed)
    given = None if evidence.given is None else layout.arrange(evidence.given)
    # Where orderings are fixed, what is given comes first in them, and is seen like any other column.
    dense = given if network.connectivities.any_order else None
    outputs = network.run(layout, values, observed=observed, given=dense, dropout=dropout, generator=generator)
    factors = layout.columns.log_prob(outputs, values)
    if observed is None and given is None:
        return factors
    return factors.masked_fill(~layout.arrange(evidence.asked), 0)


def log_prob(
    network: Network,
    rows: Rows | Evidence,
    *,
    given: Given | None = None,
    masks: int | Sequence[int] | None = None,
    segments: int = 1,
    asked_last: bool = True,
    batch_size: int = 500,
) -> Tensor:
    """log p of each row, or of what is observed of it, or of that given some of it; the model's answer.

    Memory grows neither with the number of masks nor, but for the answers, with the number of rows.

    Arguments:
        network: the network.
        rows: the rows, (rows, columns); NaN for a hole.
        given: what is conditioned on: column names or numbers, or flags for each column or each entry.
        masks: how many masks an unlimited model averages, or which masks; all R of a finite list unless told.
        segments: into how many segments an any-order model cuts an ordering, each with a pass of its own in which every
            unit sees all columns before the segment: 1 is MADE, as many as there are columns is EoNADE. Whole rows have
            one, and their own masks, if there are such (``whole_rows`` of the connectivities).
        asked_last: when an any-order model is given something, put the columns that a row asks for last in the
            ordering, where all units serve them; rows are grouped by what they ask for. ``False`` takes one ordering
            for all rows: less good, but a pass for each mask is enough when rows ask for many different things.
        batch_size: the number of rows in a pass.

    Example:
        >>> from made import Connectivities, Network
        >>> network = Network(2, Connectivities(2, (4,), masks=None))
        >>> worlds = [[0, 0], [0, 1], [1, 0], [1, 1]]
        >>> round(log_prob(network, worlds).exp().sum().item(), 5)
        1.0
        >>> [round(total, 5) for total in log_prob(network, worlds, given=[1]).exp().reshape(2, 2).sum(dim=0).tolist()]
        [1.0, 1.0]
    """
    evidence = Evidence.of(network, rows, given)
    family = network.connectivities
    numbers = family.numbers(masks)
    if batch_size < 1:
        raise ValueError(f"'batch_size' should be at least 1, not {batch_size}.")
    check_segments(network, segments)
    with torch.no_grad():
        if not family.any_order:
            return _prefix_log_prob(network, evidence, numbers, batch_size).to(evidence.values.dtype)
        answer = evidence.values.new_empty(len(evidence))
        for index, some, cut in ways(network, evidence, numbers, segments):
            part = evidence[index]
            for which, asked in arrangements(part, asked_last):
                if one_by_one(network, asked, cut):
                    mean = _log_mean_one_by_one(network, part[which], some, asked, batch_size)
                else:
                    drawn = (passes(network, number, asked, cut) for number in some)
                    (mean,) = _log_means(network, part[which], drawn, [None], batch_size)
                answer[index[which]] = mean.to(answer.dtype)
        return answer


def arranged(network: Network, number: int, asked: NDArray[np.bool_] | None) -> int | Connectivity:
    """Connectivity ``number`` of an any-order model, for rows of one arrangement."""
    return number if asked is None else network.connectivities.draw(number, lowest=0).with_last(asked)


def check_segments(network: Network, segments: int) -> None:
    """Refuse a number of segments that the network cannot have."""
    if isinstance(segments, bool) or not isinstance(segments, (int, np.integer)) or segments < 1:
        raise ValueError(f"'segments' should be a whole number, at least 1, not {segments!r}.")
    if segments > 1 and not network.connectivities.any_order:
        raise ValueError("'segments' is for networks of unlimited masks with resampled orderings.")


def way(network: Network, whole: bool, number: int, segments: int) -> tuple[int, int]:
    """The mask that stands for a number, and into how many segments: whole rows may have masks of their own."""
    count = network.connectivities.whole_rows
    return (number % count, 1) if whole and count else (number, segments)


def ways(
    network: Network, evidence: Evidence, numbers: Sequence[int], segments: int
) -> Iterator[tuple[Tensor, list[int], int]]:
    """Rows, by number, the masks that they are asked under, and into how many segments (see :func:`way`)."""
    whole = evidence.asked.all(dim=1) & bool(network.connectivities.whole_rows)
    for kind in whole.unique().tolist():
        masks = Counter(way(network, kind, number, segments)[0] for number in numbers)
        once = len(set(masks.values())) == 1  # no mask more often than another
        _, cut = way(network, kind, 0, segments)
        yield (whole == kind).nonzero().squeeze(1), list(masks if once else masks.elements()), cut


def one_by_one(network: Network, asked: NDArray[np.bool_] | None, segments: int) -> bool:
    """Whether each segment is one column, so that passes can share what they have seen (see :mod:`walk`)."""
    count = _count(network, asked)
    return segments > 1 and network.depth > 0 and _segments(network, count, segments) == count


def order_of(network: Network, number: int, asked: NDArray[np.bool_] | None) -> list[int]:
    """The columns in the order of connectivity ``number``, for rows of one arrangement."""
    connectivity = network.connectivities.draw(number, lowest=0)
    connectivity = connectivity if asked is None else connectivity.with_last(asked)
    order: list[int] = connectivity.ordering.argsort().tolist()
    return order


def _count(network: Network, asked: NDArray[np.bool_] | None) -> int:
    """How many columns come last, because they are asked for; all unless told."""
    return len(network.columns) if asked is None or not asked.any() else int(asked.sum())


def _segments(network: Network, count: int, segments: int) -> int:
    """Into how many segments the last ``count`` columns of an ordering are cut."""
    return min(-(-segments * count // len(network.columns)), count)


def passes(network: Network, number: int, asked: NDArray[np.bool_] | None, segments: int) -> list[Pass]:
    """The passes that make up one likelihood under connectivity ``number``: one for each segment with asked columns.

    A pass is a connectivity, and flags of the columns whose factors it gives; ``None`` for all.
    """
    if segments == 1:
        return [(arranged(network, number, asked), None)]
    family, width = network.connectivities, len(network.columns)
    count = _count(network, asked)
    cuts = np.round(np.linspace(width - count, width, _segments(network, count, segments) + 1)).astype(np.int64)
    parts: list[Pass] = []
    for first, last in pairwise(cuts.tolist()):
        part = family.draw(number, window=(first, last - 1))
        part = part if asked is None else part.with_last(asked)
        parts.append((part, (part.ordering > first) & (part.ordering <= last)))
    return parts


def _prefix_log_prob(network: Network, evidence: Evidence, numbers: Sequence[int], batch_size: int) -> Tensor:
    """The answer of a model whose orderings are what they are: p(asked, given) / p(given), both prefixes of them."""
    for number in numbers:
        require_prefixes(network, evidence, torch.full((len(evidence),), number))
    if evidence.given is None or len(numbers) == 1:  # one mask: the factors of what is asked are all there is to it
        (answer,) = _log_means(network, evidence, ([(number, None)] for number in numbers), [None], batch_size)
        return answer
    plain = Evidence(evidence.values, evidence.observed)
    drawn = ([(number, None)] for number in numbers)
    joint, condition = _log_means(network, plain, drawn, [None, evidence.given], batch_size)
    return joint - condition


def require_prefixes(network: Network, evidence: Evidence, connectivity: Connectivity | Tensor) -> None:
    """Refuse, if orderings are fixed, what they do not allow: the given must come first, then the asked, then holes.

    The connectivity is one, or the number of one for each row.
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
                "first in each of them, then those asked for, then the holes. Remedy: train a model with unlimited "
                f"masks and resampled orderings ({hint(masks='unlimited', resample='both')}), which answers any such "
                "question.",
                row=row,
                column=latest,
            )


def _log_mean_one_by_one(
    network: Network, evidence: Evidence, numbers: Sequence[int], asked: NDArray[np.bool_] | None, batch_size: int
) -> Tensor:
    """:func:`_log_means` of all that is asked for, a column at a time."""
    values = evidence.values
    double = torch.float64 if values.device.type != "mps" else values.dtype
    total = values.new_full((len(values),), -math.inf, dtype=double)
    for number in numbers:
        order, likelihood = order_of(network, number, asked), torch.zeros_like(total)
        for rows, batch in evidence.split(batch_size):
            for _, factor in factors(network, batch, order):
                likelihood[rows] += factor
        torch.logaddexp(total, likelihood, out=total)
    return total - math.log(len(numbers))


def _log_means(
    network: Network,
    evidence: Evidence,
    members: Iterable[Sequence[Pass]],
    parts: Sequence[Tensor | None],
    batch_size: int,
) -> list[Tensor]:
    """For each part of what is asked for, flags of entries or all of it, the log of its mean probability.

    ``members`` of the ensemble are lists of passes, whose factors belong together. All of it is in double precision,
    so that many masks add no rounding of their own.
    """
    values = evidence.values
    double = torch.float64 if values.device.type != "mps" else values.dtype
    totals = [values.new_full((len(values),), -math.inf, dtype=double) for _ in parts]
    count = 0
    for member in members:
        count += 1
        sums = [torch.zeros_like(total) for total in totals]
        for connectivity, flags in member:
            layout = network.layout(connectivity, rows=len(evidence))
            here = None if flags is None else layout.arrange(torch.from_numpy(flags).to(values.device))
            for rows, batch in evidence.split(batch_size):
                factors = _factors(network, layout, batch)
                for total, part in zip(sums, parts, strict=True):
                    chosen = factors if part is None else factors * layout.arrange(part[rows])
                    chosen = chosen if here is None else chosen.masked_fill(~here, 0)
                    # A quotient of two of these would lose the digits that a sum in single precision does not have.
                    total[rows] += chosen.sum(dim=1, dtype=None if len(parts) == 1 else double)
        for total, likelihood in zip(totals, sums, strict=True):
            torch.logaddexp(total, likelihood, out=total)
    return [total - math.log(count) for total in totals]
