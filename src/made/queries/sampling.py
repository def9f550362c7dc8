r"""Rows drawn from the model, or completed given some of their columns.

A sample of a mixture over masks is a sample under one mask, drawn for each row. Under a mask, columns are drawn in its
ordering, in one pass (:mod:`made.queries.ancestral`), in one for each segment, or one column at a time
(:mod:`made.queries.incremental`), as the schedule of the ensemble says.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.columns.group import Rows
from made.errors import QuestionError
from made.hints import argument
from made.network.layout import SortedLayout
from made.network.masked import Network
from made.queries import incremental
from made.queries.ancestral import ancestral
from made.queries.ensemble import Ensemble
from made.queries.evidence import Evidence
from made.queries.likelihood import log_prob, require_prefixes
from made.queries.random import uniform

TEMPERATURES = (1e-3, 1e3)


def sample(
    ensemble: Ensemble,
    count: int | None = None,
    *,
    known: Rows | None = None,
    numbers: Sequence[int] | None = None,
    most_likely: bool = False,
    temperature: float = 1.0,
    asked_last: bool = True,
    generator: torch.Generator | int | None = None,
    batch_size: int = 500,
    wanted: NDArray[np.bool_] | None = None,
) -> Tensor:
    """Rows drawn from the model. Shape: (rows, columns).

    Arguments:
        ensemble: the network and its masks.
        count: the number of rows (default: as many as ``known`` has, or one).
        known: rows to complete, NaN where a value is to be drawn; they may differ in what is known.
        numbers: the mask of each row (default: drawn for each row, so that rows are from the ensemble).
        most_likely: instead of drawing, take the most likely value of each column in turn, under each mask; of the
            rows found, keep the one that the ensemble finds most likely.
        temperature: below 1 draws nearer to the most likely values, above 1 farther from them: each conditional is
            sharpened or flattened, so that only 1 draws from the model. From 0.001 to 1000.
        asked_last: see :func:`made.log_prob`.
        generator: a random generator, or a seed.
        batch_size: the number of rows drawn together; of one column at a time, the least number.
        wanted: flags of the columns to draw, (columns); others stay NaN where they are not known. Default: all.

    Example:
        >>> from made import Connectivities, Ensemble, Network
        >>> ensemble = Ensemble(Network(5, Connectivities(5, (8,), masks=None)))
        >>> sample(ensemble, 3, generator=0).shape
        torch.Size([3, 5])
        >>> sample(ensemble, known=[[1, float("nan"), 0, 1, 1]], generator=0)[0, [0, 2, 3, 4]]
        tensor([1., 0., 1., 1.])
    """
    network = ensemble.network
    width, like = len(network.columns), network.c
    if batch_size < 1:
        raise ValueError(f"'batch_size' should be at least 1, not {batch_size}.")
    check_temperature(temperature)
    if count is not None and (not isinstance(count, (int, np.integer)) or count < 0):
        raise ValueError(f"'count' should be a whole number, at least 0, not {count!r}; rows to complete are 'known'.")
    if known is None:
        known = torch.full((1 if count is None else count, width), torch.nan, dtype=like.dtype)
    values, missing = network.columns.check(known, like)
    rows = values if missing is None else values.masked_fill(missing, torch.nan)
    if count is not None and count != len(rows):
        if len(rows) != 1:
            raise ValueError(f"'count' is {count}, but 'known' has {len(rows)} rows.")
        rows = rows.expand(count, -1)
    if isinstance(generator, (int, np.integer)):
        generator = torch.Generator(like.device).manual_seed(int(generator))
    with torch.no_grad():
        if numbers is not None:
            chosen = torch.as_tensor(numbers)
            if chosen.shape != (len(rows),) or chosen.dtype.is_floating_point or (chosen < 0).any():
                raise ValueError(f"'numbers' should have {len(rows)} elements, whole numbers, one for each row.")
        elif most_likely:
            return network.columns.outer(_most_likely(ensemble, rows, asked_last, batch_size))
        else:
            pick = torch.rand(len(rows), generator=generator, dtype=like.dtype, device=like.device)
            chosen = _choose_masks(ensemble, rows, pick, batch_size)
        noise = uniform(len(rows), width, like=like, generator=generator)
        new = rows.isnan().all(dim=1) & (ensemble.by_column and numbers is None)
        filled = rows.clone()
        if new.any():
            positions = _random_positions(network, len(rows), generator).to(rows.device)
            left_out = torch.zeros(width, dtype=torch.bool) if wanted is None else ~torch.from_numpy(wanted)
            positions[:, left_out] = width
            size = max(batch_size, incremental.rows_at_a_time(network))
            for index in new.nonzero().squeeze(1).split(size):
                drawn = incremental.complete(network, rows[index], positions[index], noise[index], temperature)
                filled[index] = drawn.masked_fill(left_out.to(rows.device), torch.nan)
        if not new.all():
            filled[~new] = complete(
                ensemble,
                rows[~new],
                chosen[~new.cpu()],
                None if most_likely else noise[~new],
                asked_last=asked_last,
                batch_size=batch_size,
                temperature=temperature,
                wanted=wanted,
            )
        return network.columns.outer(filled)


def _random_positions(network: Network, rows: int, generator: torch.Generator | None) -> Tensor:
    """A random ordering for each row, in which the columns of a group are neighbours: the position of each column."""
    groups = network.columns.groups or (1,) * len(network.columns)
    keys = torch.rand(rows, len(groups), generator=generator, device=network.c.device)
    order = keys.repeat_interleave(torch.tensor(groups, device=keys.device), dim=1).argsort(dim=1, stable=True)
    return order.argsort(dim=1).to(torch.int32)


def check_temperature(temperature: float) -> None:
    """Refuse a temperature at which output units would leave the range of their floating-point numbers."""
    low, high = TEMPERATURES
    real = isinstance(temperature, (int, float, np.integer, np.floating)) and not isinstance(temperature, bool)
    if not real or not low <= temperature <= high:
        raise QuestionError(
            f"{argument('temperature')} should be above 0, from {low:g} to {high:g}, not {temperature!r}: 1 samples "
            "from the model, lower values are closer to the mode."
        )


def _evidence(rows: Tensor, known: Tensor) -> Evidence:
    """Evidence of rows that have been checked: NaN is missing, and what is ``known`` is given."""
    missing = rows.isnan()
    observed = ~missing if missing.any() else None
    return Evidence(rows.masked_fill(missing, 0), observed, known if known.any() else None)


def _choose_masks(ensemble: Ensemble, rows: Tensor, pick: Tensor, batch_size: int) -> Tensor:
    """A mask for each row: any, or, from a finite list, with the probability that it gives to what is known."""
    candidates, nothing = ensemble.numbers, rows.isnan().all(dim=1)
    if ensemble.any_order:
        weights = pick.new_tensor(ensemble.schedule.weights).cumsum(dim=0)
        index = torch.where(nothing, torch.bucketize(pick, weights[:-1], right=True), (pick * len(candidates)).long())
    elif bool(nothing.all()):
        index = (pick * len(candidates)).long()
    else:
        evidence = _evidence(rows, torch.zeros_like(rows, dtype=torch.bool))
        members = [ensemble.with_masks([number]) for number in candidates]
        known = [log_prob(member, evidence, batch_size=batch_size) for member in members]
        below = torch.stack(known).softmax(dim=0).cumsum(dim=0)[:-1]
        index = (pick >= below).sum(dim=0)
    return torch.tensor(candidates)[index.cpu()]


def _most_likely(ensemble: Ensemble, rows: Tensor, asked_last: bool, batch_size: int) -> Tensor:
    """The most likely values in turn, under each mask; of these rows, the ones that the ensemble finds most likely."""
    best, best_score = rows, rows.new_full((len(rows),), -torch.inf)
    for index, number in enumerate(ensemble.numbers):
        chosen = torch.full((len(rows),), number)
        filled = complete(ensemble, rows, chosen, None, asked_last=asked_last, batch_size=batch_size)
        evidence = _evidence(filled, ~rows.isnan())
        score = log_prob(ensemble, evidence, asked_last=asked_last, batch_size=batch_size)
        best = torch.where((score > best_score).unsqueeze(1), filled, best) if index else filled
        best_score = torch.maximum(score, best_score)
    return best


@torch.no_grad()
def complete(
    ensemble: Ensemble,
    rows: Tensor,
    numbers: Tensor,
    noise: Tensor | None,
    *,
    asked_last: bool = True,
    batch_size: int = 500,
    temperature: float = 1.0,
    wanted: NDArray[np.bool_] | None = None,
) -> Tensor:
    """Fill the NaN of each row under its own mask, with draws or with the most likely value of each column in turn.

    Rows are coded, and ``noise`` are uniform random numbers, both (rows, columns); ``None`` for the most likely values.
    ``numbers`` are the masks of the rows, (rows). For all else see :func:`sample`. Fixed orderings draw all columns.
    """
    network, filled = ensemble.network, rows.clone()
    missing = rows.isnan()
    chosen = None if wanted is None or not ensemble.any_order else torch.from_numpy(wanted).to(rows.device)
    left_out = None if chosen is None else missing & ~chosen
    observed = None if left_out is None else ~left_out
    everything = Evidence(rows.masked_fill(missing, 0), observed, None if missing.all() else ~missing)
    require_prefixes(network, everything, numbers)
    # One by one, it makes no difference what comes last: the columns that are given are seen from the start.
    asked_last = asked_last and not ensemble.one_by_one
    one_by_one: list[Tensor] = []
    positions = torch.zeros(rows.shape, dtype=torch.int32)
    for number in numbers.unique().tolist():
        of_mask = (numbers == number).nonzero().squeeze(1).to(rows.device)
        schedule = ensemble.with_masks([number]).schedule
        for group in schedule.groups(everything[of_mask], asked_last=asked_last):
            (mask,) = group.masks
            index = of_mask[group.rows]
            if group.incremental:
                one_by_one.append(index)
                positions[index.cpu()] = torch.tensor(group.order(mask), dtype=torch.int32).argsort().to(torch.int32)
                continue
            batches = index.split(batch_size)
            for connectivity, columns in group.passes(mask):
                layout = network.layout(connectivity, packed=True)
                assert isinstance(layout, SortedLayout)
                here = chosen if columns is None else torch.from_numpy(columns).to(rows.device)
                here = here if chosen is None or here is None else here & chosen
                for index in batches:
                    values = filled[index]
                    known = ~values.isnan()  # including the draws of earlier segments
                    drawn = ancestral(
                        network,
                        layout,
                        layout.arrange(values.masked_fill(~known, 0)),
                        layout.arrange(known) if known.any() else None,
                        None if noise is None else layout.arrange(noise[index]),
                        temperature,
                        None if here is None else layout.arrange(here),
                    )
                    drawn = layout.restore(drawn)
                    filled[index] = drawn if here is None else torch.where(here, drawn, values)
    if one_by_one:
        if left_out is not None:
            positions[left_out.cpu()] = rows.shape[1]
        for index in torch.cat(one_by_one).sort().values.split(max(batch_size, incremental.rows_at_a_time(network))):
            some = None if noise is None else noise[index]
            filled[index] = incremental.complete(network, filled[index], positions[index.cpu()], some, temperature)
    return filled if left_out is None else filled.masked_fill(left_out, torch.nan)
