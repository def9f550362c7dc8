"""The columns of a table as inputs of a graph, and their codes: what :meth:`made.tables.field.Field.encode` does.

Text is an input of strings, empty where it is missing. Everything else is an input of doubles, NaN where it is missing:
numbers, truth values as 0 and 1, dates as seconds since 1970-01-01. A graph cannot raise an error: where
``Field.encode`` does, the entry is *refused*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from made.columns.base import Column
from made.columns.discrete import Binary, Categorical
from made.columns.logistic import Numeric
from made.columns.ordinal import Ordinal
from made.columns.point_masses import PointMasses
from made.errors import QuestionError
from made.export.graph import DOUBLE, FLAG, WHOLE, Graph, Node
from made.export.likelihood import Listed, Rule
from made.export.numbers import ListedNumbers, Numbers, codes_of
from made.network.masked import Network
from made.tables.field import Field
from made.tables.summary import has_multiples

TEXT = np.dtype(np.str_)
MISSING_TEXT, UNSEEN_TEXT = -2, -1  # codes of text

RULES: dict[type[Column], type[Rule]] = {
    Binary: ListedNumbers,
    Categorical: Listed,
    Ordinal: ListedNumbers,
    Numeric: Numbers,
    PointMasses: Numbers,
}


def _rule(graph: Graph, kinds: Sequence[Column], names: Sequence[str], dtype: np.dtype[Any]) -> Rule:
    kind = kinds[0]
    rule = RULES.get(type(kind), Listed if kind.listed else None)
    if rule is None:
        raise QuestionError(
            f"column {names[0]!r} is of the kind {kind.kind!r}, which cannot be exported: of kinds other than the "
            "built-in ones, only those with a list of values can be.",
            column=names[0],
        )
    return rule(graph, kinds, dtype)


@dataclass(frozen=True, eq=False)
class Block:
    """Columns that share a rule and differ only in parameters.

    Attributes:
        members: their numbers in the model.
        rule: their input units and likelihood.
        codes: (rows, columns), 0 for a missing value.
        observed: flags of the values that are not missing.
        refused: flags of the values that the model rejects, (rows, 1 or columns).
    """

    members: list[int]
    rule: Rule
    codes: Node
    observed: Node
    refused: Node


@dataclass(frozen=True, eq=False)
class Inputs:
    """All columns of a network in a graph.

    Attributes:
        blocks: the columns.
        x: the input units, 0 for a missing value, (rows, inputs).
        observed: 1 for a value that is not missing, (rows, columns).
        ones: 1 for a binary value that is 1, (rows, columns).
        refused: flags of the rows with a value that the model rejects, (rows).
    """

    blocks: list[Block]
    x: Node
    observed: Node
    ones: Node
    refused: Node

    @classmethod
    def of(cls, graph: Graph, network: Network, found: list[Block], hidden: int | None = None) -> Inputs:
        """From blocks; the network does not see the column ``hidden``."""
        dtype = found[0].rule.dtype
        columns = [d for block in found for d in block.members]
        flags = graph.concat([block.observed for block in found])
        observed = flags.gather(np.argsort(columns)).cast(dtype)
        if hidden is not None:
            observed = observed * (np.arange(len(columns)) != hidden)
        units = [block.rule.encode(block.codes).reshape(0, -1) for block in found]
        places = np.concatenate([np.flatnonzero(network.columns.input_columns == d) for d in columns])
        x = graph.concat(units).gather(np.argsort(places)) * observed.gather(network.columns.input_columns)
        refused = graph.concat([block.refused for block in found]).any()
        ones = graph.concat([block.codes.equals(1.0) for block in found]).gather(np.argsort(columns)).cast(dtype)
        return cls(found, x, observed, ones * observed, refused)


def is_text(field: Field) -> bool:
    """Whether the input of a column is text."""
    return field.dtype == "text"


def blocks(
    graph: Graph, network: Network, fields: Sequence[Field], known: NDArray[np.float64], inputs: dict[int, Node]
) -> list[Block]:
    """The columns of a model by kind.

    Arguments:
        graph: where the nodes are added.
        network: the network.
        fields: all columns of the model.
        known: the codes of those that are given, NaN for all others, (columns).
        inputs: the inputs by the number of their column; a column that has none is given, or missing.
    """
    dtype = np.dtype(str(network.c.dtype).removeprefix("torch."))
    together: dict[Any, list[int]] = {}
    for d, (field, kind) in enumerate(zip(fields, network.columns, strict=True)):
        key = kind.family, field.values, field.missing, field.other > 0, is_text(field), d in inputs
        together.setdefault(key, []).append(d)
    rows = graph.op("Shape", next(iter(inputs.values())), dtype=WHOLE)
    found = []
    for members in together.values():
        rule = _rule(graph, [network.columns[d] for d in members], [fields[d].name for d in members], dtype)
        if members[0] in inputs:
            raw = graph.concat([inputs[d].unsqueeze(1) for d in members])
            codes, observed, refused = _coded(graph, fields[members[0]], rule, raw)
        else:
            fixed, shape = known[members][None], graph.concat([rows, graph.whole([len(members)])])
            codes = graph.constant(np.nan_to_num(fixed, posinf=math.inf)).expand(shape)
            observed = graph.constant(~np.isnan(fixed)).expand(shape)
            refused = graph.constant(np.zeros_like(fixed, dtype=np.bool_)).expand(shape)
        # As codes of the network's precision, which unlisted numbers have.
        codes = codes.cast(dtype).double() if isinstance(rule, ListedNumbers) else codes
        found.append(Block(members, rule, codes, observed, refused))
    return found


def _coded(graph: Graph, field: Field, rule: Rule, raw: Node) -> tuple[Node, Node, Node]:
    """Codes, flags of what is observed, and flags of what is refused. Shapes: (rows, columns)."""
    if is_text(field):
        known = {str(value): code for code, value in enumerate(field.values)} | {"": MISSING_TEXT}
        options = {"keys_strings": list(known), "values_int64s": list(known.values()), "default_int64": UNSEEN_TEXT}
        place = graph.op("LabelEncoder", raw, dtype=WHOLE, domain="ai.onnx.ml", **options)
        codes, absent, unseen = place.double(), place.equals(MISSING_TEXT), place.equals(UNSEEN_TEXT)
    else:
        absent = raw.is_nan()
        numbers = absent.where(graph.constant(0.0), raw)
        infinite = numbers.is_infinite()
        numbers = infinite.where(graph.constant(0.0), numbers)
        if not field.listed:
            codes, refused = _on_steps(graph, rule, field, numbers)
            return _finished(graph, codes, absent, refused | infinite, math.inf if field.missing else None)
        values = np.array([float(value) for value in field.values])
        at = numbers.unsqueeze(-1).equals(values)
        codes = (at.double() * np.arange(len(values), dtype=np.float64)).sum()
        unseen = ~at.any() | infinite
    refused = unseen
    if field.bucket:
        codes = unseen.where(graph.constant(float(len(field.values) + field.missing)), codes)
        refused = graph.constant(False, FLAG) & unseen
    elif isinstance(rule, ListedNumbers) and rule.beside is not None:
        codes, refused = unseen.where(codes_of(rule.beside, numbers), codes), infinite
    return _finished(graph, codes, absent, refused, float(len(field.values)) if field.missing else None)


def _finished(graph: Graph, codes: Node, absent: Node, refused: Node, missing: float | None) -> tuple[Node, Node, Node]:
    """With the code of a missing value, if it has one."""
    codes = absent.where(graph.constant(missing or 0.0, DOUBLE), codes)
    observed = absent | True if missing is not None else ~absent
    return codes, observed, refused & ~absent


def _on_steps(graph: Graph, rule: Rule, field: Field, numbers: Node) -> tuple[Node, Node]:
    """Numbers rounded to the grid, and which of them are refused."""
    grids, supports = [kind.grid for kind in rule.kinds], [kind.support for kind in rule.kinds]
    origin, step = np.array(grids).T
    off = graph.constant(False, FLAG) & numbers.is_nan()
    if step.any():
        steps = (numbers - origin) / step
        off = (steps - steps.round()).abs() >= steps.abs() * 1e-6 + 1e-6
        numbers = off.where(steps.round() * step + origin, numbers) if field.other else numbers
        exact = np.array([has_multiples(*grid) for grid in grids])
        whole, parts = np.where(step < 1, 1, step), np.where(step < 1, np.round(1 / step), 1)
        inside = graph.constant(exact) & ((numbers / step).abs() < 2.0**53)
        numbers = inside.where((numbers / step).round() * whole / parts, numbers)
    if field.other:
        return numbers, graph.constant(False, FLAG) & off
    least = np.maximum(np.array([low for low, _ in supports]), np.finfo(np.float64).min)
    return numbers, off | (numbers < least)
