"""The answers of a model as nodes of a graph: log p of a row, and the distribution of one column given the others.

Which passes an answer takes is asked of the schedule that every query asks (:mod:`made.queries.schedule`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from made.errors import QuestionError
from made.export.graph import Graph, Node
from made.export.inputs import Block, Inputs
from made.export.likelihood import Listed
from made.export.mixture import Mixture
from made.export.network import Passes
from made.export.numbers import Numbers
from made.network.connectivity import Connectivity
from made.network.masked import Network
from made.queries.conditional import masks_agree, predict
from made.queries.ensemble import Ensemble
from made.queries.evidence import Evidence
from made.queries.schedule import RowGroup

TABLES = ("probabilities", "quantiles")  # answers with several numbers for each row

MOST_WEIGHTS = 2**27  # of all masked matrices together, which ONNX Runtime holds in memory


def _check_size(network: Network, passes: int) -> None:
    weights = passes * sum(math.prod(network.shapes[name]) for name in network.matrices)
    if weights > MOST_WEIGHTS:
        raise QuestionError(
            f"an answer takes {passes} passes of {weights // passes:,} weights, more than a graph should hold "
            f"({MOST_WEIGHTS:,}): average fewer masks, or export a smaller model.",
            argument="masks",
        )


def _group(ensemble: Ensemble, observed: bool, given: bool = False, column: int = 0) -> RowGroup:
    """The passes of a row without missing values, or with them; or of one column given others."""
    width = len(ensemble.network.columns)
    flags = torch.ones(1, width, dtype=torch.bool)
    if given:
        others = flags.clone()
        others[:, column] = False
        evidence = Evidence(torch.zeros(1, width), None, others)
    else:
        some = flags.clone()
        some[:, 0] = observed
        evidence = Evidence(torch.zeros(1, width), some)
    (group,) = ensemble.schedule.groups(evidence)
    return group


def log_prob(graph: Graph, ensemble: Ensemble, inputs: Inputs) -> Node:
    """log p of what is observed of each row; NaN where fixed orderings do not allow it. Shape: (rows)."""
    whole, partial = (_group(ensemble, observed) for observed in (True, False))
    answer = _log_mean(graph, ensemble, inputs, partial)
    if (whole.shares, whole.segments) != (partial.shares, partial.segments):
        complete = (inputs.observed > 0.0).all()
        answer = complete.where(_log_mean(graph, ensemble, inputs, whole), answer)
    if ensemble.any_order:
        return answer
    family = ensemble.network.connectivities
    positions = np.stack([family[number].ordering for number in ensemble.numbers])[:, None]
    places = inputs.observed.unsqueeze(0)
    beside = ~(places * positions).max().equals(places.sum())
    return beside.any(0).where(graph.constant(math.nan), answer)


def _log_mean(graph: Graph, ensemble: Ensemble, inputs: Inputs, group: RowGroup) -> Node:
    network = ensemble.network
    members = [group.passes(number) for number in group.shares]
    passes = [each for member in members for each in member]
    _check_size(network, len(passes))
    width, total = len(network.columns), None
    counted = np.stack([np.ones(width) if each.columns is None else each.columns for each in passes])
    y = Passes(graph, network, [each.connectivity for each in passes]).outputs(inputs)
    for block in inputs.blocks:
        log_p = block.rule.log_prob(_units(network, y, block), block.codes).double()
        log_p = block.observed.where(log_p, graph.constant(0.0)) * counted[:, None, block.members]
        total = log_p.sum() if total is None else total + log_p.sum()
    assert total is not None
    likelihoods = total.reshape(len(members), len(members[0]), -1).sum(1)
    return (likelihoods + np.log(list(group.shares.values()))[:, None]).logsumexp(0)


def _units(network: Network, y: Node, block: Block) -> Node:
    """The output units of a block. Shapes: (masks, rows, outputs) to (masks, rows, columns, units)."""
    places = [np.flatnonzero(network.columns.output_columns == d) for d in block.members]
    return y.gather(np.concatenate(places)).reshape(0, 0, len(places), len(places[0]))


def conditional(
    graph: Graph, ensemble: Ensemble, inputs: Inputs, column: int, levels: Sequence[float]
) -> dict[str, Node]:
    """The distribution of one column, given what is observed of the others, by the name of the output."""
    network = ensemble.network
    if not ensemble.any_order:
        raise QuestionError(
            "a model whose orderings are fixed or a finite list answers only some conditionals: export log p, or fit "
            "a model with unlimited masks.",
            argument="column",
        )
    (block,) = (each for each in inputs.blocks if column in each.members)
    place = block.members.index(column)
    # A block of the column alone.
    codes, observed = (each.slice(place, place + 1) for each in (block.codes, block.observed))
    rule = type(block.rule)(graph, [network.columns[column]], block.rule.dtype)
    alone = Block([column], rule, codes, observed, block.refused)
    prior = predict(ensemble, torch.full((1, len(network.columns)), torch.nan), column)
    units, weights = (each.double().cpu().numpy() for each in (prior.units, prior.weights))
    answer = _answer(graph, alone, graph.constant(units[:, :, None], rule.dtype), weights, levels)
    if len(network.columns) == 1:
        return answer
    group = _group(ensemble, True, given=True, column=column)
    masks = group.masks[:1] if masks_agree(ensemble, True) else group.masks
    _check_size(network, len(masks))
    connectivities: list[int | Connectivity] = [
        each.connectivity
        for number in masks
        for each in group.passes(number)
        if each.columns is None or each.columns[column]
    ]
    y = Passes(graph, network, connectivities, given=True).outputs(inputs)
    even = np.full((len(masks), 1), -math.log(len(masks)))
    some = _answer(graph, alone, _units(network, y, alone), even, levels)
    known = (inputs.observed > 0.0).any()
    return {
        name: (known.unsqueeze(1) if name in TABLES else known).where(node, answer[name]) for name, node in some.items()
    }


def _answer(graph: Graph, block: Block, units: Node, weights: np.ndarray, levels: Sequence[float]) -> dict[str, Node]:
    """From the output units of the column under each mask, (masks, rows, 1, units), and their log weights."""
    kind, rule = block.rule.kinds[0], block.rule
    nothing = graph.constant(math.nan)
    observed = block.observed.squeeze(1)
    if isinstance(rule, Listed):
        log_p = rule.log_shares(units.squeeze(2)).slice(0, kind.cardinality).double() + weights[:, :, None]
        shares = log_p.logsumexp(0).exp()
        shares = shares / shares.sum(keep=True)
        places = np.arange(kind.cardinality, dtype=np.float64)
        at = block.codes.equals(places)
        own = (at.double() * shares).sum().log()
        return {"log_prob": (at.any() & observed).where(own, nothing), "probabilities": shares}
    log_p = (rule.log_prob(units, block.codes).squeeze(2).double() + weights).logsumexp(0)
    answer = {"log_prob": observed.where(log_p, nothing)}
    if isinstance(rule, Numbers):
        mixture = Mixture.of(rule, units.squeeze(2), weights)
        mean, deviation = mixture.moments()
        answer |= {"mean": mean.squeeze(1), "standard_deviation": deviation.squeeze(1)}
        answer |= {"quantiles": mixture.quantiles(levels)} if levels else {}
    return answer
