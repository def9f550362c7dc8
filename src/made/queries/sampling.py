r"""Draws: each weight used once per sample, from nothing or given known columns.

After the column at position d is drawn, only the units of degree d become computable, and they never change again. So
one sample takes the multiply-adds of one pass, where D passes are the usual way. To keep them fast, degrees are taken
range by range, the same ranges as in :mod:`staircase`: what all earlier ranges add to the units of a range is one
matrix product, and only the corner is gone through column by column.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from made.columns.group import Rows
from made.errors import QuestionError
from made.hints import argument
from made.network.layout import SortedLayout
from made.network.masked import ACTIVATIONS, Network
from made.queries import incremental
from made.queries.evidence import Evidence, arrangements
from made.queries.likelihood import check_segments, log_prob, one_by_one, order_of, passes, require_prefixes, way

__all__ = ["check_temperature", "sample"]

TEMPERATURES = (1e-3, 1e3)


def sample(
    network: Network,
    count: int | None = None,
    *,
    known: Rows | None = None,
    masks: int | Sequence[int] | None = None,
    numbers: Sequence[int] | None = None,
    most_likely: bool = False,
    temperature: float = 1.0,
    segments: int = 1,
    asked_last: bool = True,
    generator: torch.Generator | int | None = None,
    batch_size: int = 500,
) -> Tensor:
    """Rows drawn from the model. Shape: (rows, columns).

    Arguments:
        network: the network.
        count: how many rows; one, or as many as ``known`` has, unless told.
        known: rows to complete, NaN where a value is to be drawn; they may differ in what is known.
        masks: how many masks an unlimited model draws from, or which masks; all R of a finite list unless told.
        numbers: the mask of each row; unless told, each row draws its own, so that rows are from the ensemble.
        most_likely: instead of drawing, take the most likely value of each column in turn; of the rows that this gives
            under each mask, the one that the ensemble finds most likely is kept.
        temperature: below 1 draws nearer to the most likely values, above 1 farther from them: each conditional is
            sharpened or flattened, so that 1 is the only value that draws from the model. From 0.001 to 1000.
        segments, asked_last: see :func:`made.log_prob`.
        generator: random numbers, or a seed for them.
        batch_size: the number of rows drawn together.

    Example:
        >>> from made import Connectivities, Network
        >>> network = Network(5, Connectivities(5, (8,), masks=None))
        >>> sample(network, 3, generator=0).shape
        torch.Size([3, 5])
        >>> sample(network, known=[[1, float("nan"), 0, 1, 1]], generator=0)[0, [0, 2, 3, 4]]
        tensor([1., 0., 1., 1.])
    """
    width, like = len(network.columns), network.c
    if batch_size < 1:
        raise ValueError(f"'batch_size' should be at least 1, not {batch_size}.")
    check_segments(network, segments)
    check_temperature(temperature)
    if count is not None and (not isinstance(count, (int, np.integer)) or count < 0):
        raise ValueError(f"'count' should be a whole number, at least 0, not {count!r}; rows to complete are 'known'.")
    if known is None:
        known = torch.full((1 if count is None else count, width), torch.nan, dtype=like.dtype)
    values, hole = network.columns.check(known, like)
    rows = values if hole is None else values.masked_fill(hole, torch.nan)
    if count is not None and count != len(rows):
        if len(rows) != 1:
            raise ValueError(f"'count' is {count}, but 'known' has {len(rows)} rows.")
        rows = rows.expand(count, -1)
    if isinstance(generator, (int, np.integer)):
        generator = torch.Generator(like.device).manual_seed(int(generator))
    candidates = network.connectivities.numbers(masks)
    with torch.no_grad():
        if numbers is not None:
            chosen = torch.as_tensor(numbers)
            if chosen.shape != (len(rows),) or chosen.dtype.is_floating_point or (chosen < 0).any():
                raise ValueError(f"'numbers' should have {len(rows)} elements, whole numbers, one for each row.")
        elif most_likely:
            return network.columns.outer(_most_likely(network, rows, candidates, asked_last, batch_size, segments))
        else:
            pick = torch.rand(len(rows), generator=generator, dtype=like.dtype, device=like.device)
            chosen = _choose(network, rows, candidates, pick, batch_size)
        # In double precision, and above zero, so that what is very unlikely is not drawn more often than it should.
        double = like.dtype if like.device.type == "mps" else torch.float64
        uniform = torch.rand(len(rows), width, generator=generator, dtype=double, device=like.device)
        uniform.clamp_(min=torch.finfo(double).eps / 4)
        noise = None if most_likely else uniform
        filled = complete(network, rows, chosen, noise, asked_last, batch_size, temperature, segments)
        return network.columns.outer(filled)


def check_temperature(temperature: float) -> None:
    """Refuse a temperature at which output units would leave the range of their floating-point numbers."""
    low, high = TEMPERATURES
    real = isinstance(temperature, (int, float, np.integer, np.floating)) and not isinstance(temperature, bool)
    if not real or not low <= temperature <= high:
        raise QuestionError(
            f"{argument('temperature')} should be above 0, from {low:g} to {high:g}, not {temperature!r}: 1 draws from "
            "the model, and the lowest hardly leaves the most likely values."
        )


def _evidence(rows: Tensor, known: Tensor) -> Evidence:
    """Rows that have been checked, as evidence: NaN is a hole, and what is ``known`` is given."""
    hole = rows.isnan()
    observed = ~hole if hole.any() else None
    return Evidence(rows.masked_fill(hole, 0), observed, known if known.any() else None)


def _choose(network: Network, rows: Tensor, candidates: Sequence[int], pick: Tensor, batch_size: int) -> Tensor:
    """A mask for each row: any, or, from a finite list, with the probability that it gives to what is known."""
    if network.connectivities.any_order or bool(rows.isnan().all()):
        index = (pick * len(candidates)).long()
    else:
        evidence = _evidence(rows, torch.zeros_like(rows, dtype=torch.bool))
        known = [log_prob(network, evidence, masks=[number], batch_size=batch_size) for number in candidates]
        below = torch.stack(known).softmax(dim=0).cumsum(dim=0)[:-1]
        index = (pick >= below).sum(dim=0)
    return torch.tensor(candidates)[index.cpu()]


def _most_likely(
    network: Network, rows: Tensor, candidates: Sequence[int], asked_last: bool, batch_size: int, segments: int
) -> Tensor:
    """The most likely values in turn, under each mask; of these rows, the ones that the ensemble finds most likely."""
    best, best_score = rows, rows.new_full((len(rows),), -torch.inf)
    for index, number in enumerate(candidates):
        chosen = torch.full((len(rows),), number)
        filled = complete(network, rows, chosen, None, asked_last, batch_size, segments=segments)
        evidence = _evidence(filled, ~rows.isnan())
        score = log_prob(
            network, evidence, masks=candidates, segments=segments, asked_last=asked_last, batch_size=batch_size
        )
        best = torch.where((score > best_score).unsqueeze(1), filled, best) if index else filled
        best_score = torch.maximum(score, best_score)
    return best


@torch.no_grad()
def complete(
    network: Network,
    rows: Tensor,
    numbers: Tensor,
    uniform: Tensor | None,
    asked_last: bool,
    batch_size: int,
    temperature: float = 1.0,
    segments: int = 1,
) -> Tensor:
    """Fill the NaN of each row under its mask, by uniform random numbers or, without, by most likely values."""
    family, filled = network.connectivities, rows.clone()
    hole = rows.isnan()
    everything = Evidence(rows.masked_fill(hole, 0), None, None if hole.all() else ~hole)
    require_prefixes(network, everything, numbers)
    for number in numbers.unique().tolist():
        of_mask = (numbers == number).nonzero().squeeze(1).to(rows.device)
        evidence = everything[of_mask]
        if family.any_order:
            groups = list(arrangements(evidence, asked_last))
        else:
            groups = [(torch.arange(len(evidence), device=rows.device), None)]
        for which, asked in groups:
            mask, cut = way(network, asked is None, number, segments)
            if one_by_one(network, asked, cut):
                order = order_of(network, mask, asked)
                for part in which.split(batch_size):
                    index = of_mask[part]
                    noise = None if uniform is None else uniform[index]
                    filled[index] = incremental.draw(network, filled[index], order, noise, temperature)
                continue
            for connectivity, flags in passes(network, mask, asked, cut):
                layout = network.layout(connectivity, packed=True)
                assert isinstance(layout, SortedLayout)
                wanted = None if flags is None else torch.from_numpy(flags).to(rows.device)
                for part in which.split(batch_size):
                    index = of_mask[part]
                    values = filled[index]
                    known = ~values.isnan()  # also what earlier segments have drawn
                    drawn = _ancestral(
                        network,
                        layout,
                        layout.arrange(values.masked_fill(~known, 0)),
                        layout.arrange(known) if known.any() else None,
                        None if uniform is None else layout.arrange(uniform[index]),
                        temperature,
                        None if wanted is None else layout.arrange(wanted),
                    )
                    drawn = layout.restore(drawn)
                    filled[index] = drawn if wanted is None else torch.where(wanted, drawn, values)
    return filled


class _Corner(NamedTuple):
    """The corner of one matrix in one range of degrees.

    ``weights`` has the rows of each degree; ``source`` the units that they are multiplied with, which come after
    ``full`` others; ``starts`` how many units of that layer are before each degree.
    """

    weights: Sequence[Tensor]
    source: Tensor
    full: int
    starts: list[int]


def _ancestral(
    network: Network,
    layout: SortedLayout,
    values: Tensor,
    known: Tensor | None,
    uniform: Tensor | None,
    temperature: float,
    wanted: Tensor | None = None,
) -> Tensor:
    """Complete rows, on columns in the order of the layout. Shapes: all (rows, columns).

    Arguments:
        network: the network.
        layout: a packed layout.
        values: the values that are known.
        known: which those are; ``None`` for none.
        uniform: random numbers; ``None`` for most likely values.
        temperature: of each conditional.
        wanted: which columns to draw, (columns); ``None`` for all that are not known.
    """
    columns, last = layout.columns, network.depth + 1
    given = known is not None and network.connectivities.any_order
    layers = _beginnings(network, layout, values, known, given)
    # Units of each degree: how many are before them, how many they are, and their values.
    starts = [layout.layers[layer].starts(len(columns)) for layer in range(last + 1)]
    counts = [[end - begin for begin, end in pairwise(each)] for each in starts]
    units = [layer.split_with_sizes(count) for layer, count in zip(layers, counts, strict=True)]
    packed = {
        matrix: layout.stairs(matrix).matrices(layout.weights[name])
        for name, matrix in network.matrices.items()
        if not name.startswith("U")
    }
    activation = ACTIVATIONS[network.activation]
    noise = None if uniform is None else columns.noise(uniform).t().contiguous().to(values.dtype)
    certain = [False] * len(columns) if known is None else known.all(dim=0).tolist()
    if wanted is not None:
        certain = [sure or not want for sure, want in zip(certain, wanted.tolist(), strict=True)]
    drawn = list(values.unbind(dim=1))

    for j, (low, high) in enumerate(pairwise(layout.cuts.tolist())):
        corners: dict[int, list[_Corner]] = {}
        # What earlier ranges add to this one: rows of blocks pull it, ...
        for (after, before), blocks in packed.items():
            (rows, _, corner), weight = blocks[j]
            full, prefix = layout.layers[before].bounds[j : j + 2]
            if not layout.stairs((after, before)).by_columns:
                layers[after][rows].addmm_(weight[:, :full], layers[before][:full])
            by_degree = weight[corner].split_with_sizes(counts[after][low:high])
            corner_of = _Corner(by_degree, layers[before][full:prefix], full, starts[before])
            corners.setdefault(after, []).append(corner_of)
        for degree in range(low, high):
            for layer in range(1, last + 1):
                if counts[layer][degree] == 0 or (layer == last and certain[degree]):
                    continue
                now = units[layer][degree]
                for each in corners[layer]:
                    width = each.starts[degree + 1] - each.full
                    if width:
                        now.addmm_(each.weights[degree - low][:, :width], each.source[:width])
                if layer < last:
                    value = activation(now)
                    if network.joined(layer):
                        value = value + units[layer - 1][degree]
                    if value is not now:
                        now.copy_(value)
            if certain[degree]:
                continue
            # The output units of degree d are those of the column at position d + 1, whose input has degree d + 1.
            kind, outputs = columns[degree], units[last][degree].t()
            if temperature != 1:
                outputs = kind.tempered(outputs, temperature)
            value = kind.mode(outputs) if noise is None else kind.draw(outputs, noise[degree])
            if known is not None:
                value = torch.where(known[:, degree], drawn[degree], value)
            drawn[degree] = value
            code = kind.encode(value)
            if given and known is not None:
                code = code * ~known[:, degree, None]
            units[0][degree + 1].copy_(code.t())
        # ... and columns of blocks have pushed what this one adds to all later ones.
        for (after, before), blocks in packed.items():
            if layout.stairs((after, before)).by_columns:
                (_, sources, corner), weight = blocks[j]
                below = layout.layers[after].bounds[j + 1]
                layers[after][below:].addmm_(weight[corner[0].stop :], layers[before][sources])
    return torch.stack(drawn, dim=1)


def _beginnings(
    network: Network, layout: SortedLayout, values: Tensor, known: Tensor | None, given: bool
) -> list[Tensor]:
    """What each layer is before anything is drawn, (units, rows): all that is added to its products with units.

    Known values are input units like others, or, if ``given``, seen by every unit and not through the staircase.
    """
    nothing = torch.zeros_like(values, dtype=torch.bool)
    x, _ = network.inputs(layout, values, nothing if known is None else known)
    seen, from_given = values.new_ones(values.shape[1], 1), {}  # in the end, every column will have been seen
    if given and known is not None:
        from_given = network.from_given(layout, x, seen, known)
        x, seen = torch.zeros_like(x), seen * ~known.t()
    offsets = [network.offset(layout, layer, seen, from_given) for layer in range(1, network.depth + 2)]
    return [x.t().contiguous(), *(offset.expand(-1, len(values)).contiguous() for offset in offsets)]
