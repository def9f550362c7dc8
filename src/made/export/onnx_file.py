"""`to_onnx`: a model as a file that ONNX Runtime evaluates without Python."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from made._version import __version__
from made.columns.base import LEVELS
from made.errors import QuestionError
from made.estimator import Fitted, model_of
from made.export.answers import TABLES, conditional, log_prob
from made.export.graph import DOUBLE, Graph, Node, Operation
from made.export.inputs import TEXT, Inputs, blocks, is_text
from made.io.atomic import atomic
from made.model.model import Model
from made.tables.field import Field

OPSETS = (("", 18), ("ai.onnx.ml", 2))
FORMAT = 9  # of the file: old enough for every ONNX Runtime that has these operators
SMALL = 256  # numbers; smaller arrays are not converted
MOST_BYTES = 2**31 - 2**20  # of a file of protocol buffers


def to_onnx(
    model: Fitted,
    path: str | os.PathLike[str],
    *,
    column: Any = None,
    quantiles: Sequence[float] = LEVELS,
) -> dict[str, Any]:
    """Write an answer of a model as an ONNX graph: log p of a row, or one column given the others.

    The graph has one input for each column, of the shape (rows): text as strings, empty where it is missing; everything
    else as doubles, NaN where it is missing: numbers, truth values as 0 and 1, dates as seconds since 1970-01-01.

    Its outputs are doubles. ``log_prob`` (rows) is the result of :meth:`made.MADE.score_samples`. With ``column``, it
    is the log-likelihood of the entry in that column given the observed values of all others, NaN if it is missing. A
    categorical column adds ``probabilities`` (rows, values), as in :meth:`made.MADE.predict_proba`; a numeric one adds
    ``mean`` and ``standard_deviation`` (rows) and ``quantiles`` (rows, levels). The answer is NaN for a row with
    a value that the model refuses.

    Arguments:
        model: a model, a fitted estimator, or the folder of a model.
        path: the file to write.
        column: the name or number of the column to predict; by default, log p of the row.
        quantiles: the levels of the quantiles of a column of numbers.

    Returns:
        What the file says about itself under the key ``made``, as JSON: the version, the columns with their values,
        and the outputs.

    Raises:
        QuestionError: if the model, or this answer of it, cannot be exported.
    """
    model = model_of(model)
    view, ensemble, fields = model.view, model.ensemble, model.config.schema.fields
    target = None if column is None else model.position(column)
    if target is not None and not model.schema.fields[target].listed:
        ensemble = ensemble.in_double  # as in made.queries.conditional.forecast
    network = ensemble.network
    names = model.schema.names
    if not all(names):
        raise QuestionError("a column without a name cannot be the input of a graph: name it.")
    graph = Graph(names)
    dtypes = [TEXT if is_text(field) else DOUBLE for field in model.schema.fields]
    nodes = {d: Node(graph, *pair) for d, *pair in zip(view.kept, names, dtypes, strict=True)}
    found = blocks(graph, network, fields, view.known, nodes)
    inputs = Inputs.of(graph, network, found, None if target is None else view.kept[target])
    if target is not None:
        answers = conditional(graph, ensemble, inputs, view.kept[target], quantiles)
    elif view.evidence:
        raise QuestionError(
            "log p given the values of a view is not exported, since its passes differ from row to row: export the "
            "whole model, or one column of the view."
        )
    else:
        answers = {"log_prob": log_prob(graph, ensemble, inputs)}
    about = _about(model, target, quantiles)
    refused = inputs.refused
    outputs = {
        _free(name, names): (refused.unsqueeze(1) if name in TABLES else refused).where(graph.constant(np.nan), node)
        for name, node in answers.items()
    }
    content = _file(graph, list(nodes.values()), outputs, about)
    with atomic(Path(path)) as handle:
        handle.write(content)
    return about


def _free(name: str, taken: Sequence[str]) -> str:
    """The name of an output; a column that has it comes first."""
    return name if name not in taken else _free(name + "_", taken)


def _about(model: Model, target: int | None, levels: Sequence[float]) -> dict[str, Any]:
    fields = model.schema.fields
    answer: dict[str, Any] = {"answer": "log_prob" if target is None else "conditional"}
    if target is not None:
        answer |= {"column": fields[target].name}
        answer |= {} if fields[target].listed else {"quantiles": list(levels)}
    given = {"given": model.view.evidence} if model.view.evidence else {}
    return {"version": __version__} | answer | given | {"columns": [_described(field) for field in fields]}


def _described(field: Field) -> dict[str, Any]:
    found: dict[str, Any] = {"name": field.name, "kind": field.kind, "input": "text" if is_text(field) else "number"}
    if field.temporal:
        found["unit"] = "seconds since 1970-01-01"
    if field.listed:
        found["values"] = [*field.values, *[None] * field.missing]
    return found


def _file(graph: Graph, inputs: list[Node], outputs: dict[str, Node], about: dict[str, Any]) -> bytes:
    used = graph.used()
    values = {name: value for name, value in graph.constants.items() if name in used}
    stored = {graph.name(): name for name, value in values.items() if _is_single(value)}
    for new, name in stored.items():
        values[new] = values.pop(name).astype(np.float32)
    if sum(each.nbytes for each in values.values()) > MOST_BYTES:
        raise QuestionError("the weights of the model do not fit into an ONNX file of 2 GB: export a smaller model.")
    constants = [numpy_helper.from_array(value, name) for name, value in values.items()]
    nodes = [helper.make_node("Cast", [new], [name], to=_type(DOUBLE)) for new, name in stored.items()]
    nodes += map(_node, graph.operations)
    nodes += [helper.make_node("Identity", [node.name], [name]) for name, node in outputs.items()]
    found = [
        _value(name, node.dtype, ["rows", None] if name.rstrip("_") in TABLES else ["rows"])
        for name, node in outputs.items()
    ]
    content = helper.make_graph(
        nodes, "made", [_value(node.name, node.dtype, ["rows"]) for node in inputs], found, constants
    )
    model = helper.make_model(
        content,
        opset_imports=[helper.make_opsetid(*each) for each in OPSETS],
        ir_version=FORMAT,
        producer_name="made",
        producer_version=__version__,
    )
    helper.set_model_props(model, {"made": json.dumps(about, ensure_ascii=False)})
    onnx.checker.check_model(model)
    written: bytes = model.SerializeToString()
    return written


def _is_single(value: NDArray[Any]) -> bool:
    """Whether doubles are many, and have no more digits than single precision has: they are stored in it."""
    return value.dtype == DOUBLE and value.size > SMALL and bool((value.astype(np.float32) == value).all())


def _type(dtype: np.dtype[Any]) -> int:
    return TensorProto.STRING if dtype == TEXT else int(helper.np_dtype_to_tensor_dtype(dtype))


def _value(name: str, dtype: np.dtype[Any], shape: Iterable[str | None] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, _type(dtype), None if shape is None else list(shape))


def _node(operation: Operation) -> onnx.NodeProto:
    attributes = dict(operation.attributes)
    if "to" in attributes:
        attributes["to"] = _type(attributes["to"])
    if "body" in attributes:
        body = attributes["body"]
        # The first input is the number of the step, and both begin with whether to go on: one number each.
        inputs, outputs = (
            [_value(node.name, node.dtype, () if place < scalars else None) for place, node in enumerate(body[key])]
            for key, scalars in (("inputs", 2), ("outputs", 1))
        )
        attributes["body"] = helper.make_graph(list(map(_node, body["operations"])), "body", inputs, outputs)
    return helper.make_node(
        operation.name, operation.inputs, operation.outputs, domain=operation.domain or None, **attributes
    )
