"""A graph of ONNX operators under construction: nodes with the operators of Python, and constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[Any]

FLAG, WHOLE, DOUBLE = np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.float64)


@dataclass(frozen=True)
class Operation:
    """One operator: its inputs and outputs by name."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    domain: str
    attributes: dict[str, Any]


def _operator(name: str, dtype: np.dtype[Any] | None = None) -> Callable[..., Node]:
    """A method that applies an operator; its result has the dtype of the node by default."""

    def method(self: Node, *others: Operand) -> Node:
        return self.apply(name, *others, dtype=dtype)

    return method


@dataclass(frozen=True, eq=False)
class Node:
    """The result of an operator. Numbers and arrays that it is combined with become constants of its dtype."""

    graph: Graph
    name: str
    dtype: np.dtype[Any]

    def apply(self, name: str, *others: Operand, dtype: np.dtype[Any] | None = None) -> Node:
        """The result of an operator, by its name."""
        return self.graph.op(name, self, *others, dtype=dtype)

    __add__ = _operator("Add")
    __sub__ = _operator("Sub")
    __mul__ = _operator("Mul")
    __truediv__ = _operator("Div")
    __matmul__ = _operator("MatMul")
    __neg__ = _operator("Neg")
    __lt__ = _operator("Less", FLAG)
    __gt__ = _operator("Greater", FLAG)
    __le__ = _operator("LessOrEqual", FLAG)
    __ge__ = _operator("GreaterOrEqual", FLAG)
    __and__ = _operator("And")
    __or__ = _operator("Or")
    __invert__ = _operator("Not")
    equals = _operator("Equal", FLAG)
    is_nan = _operator("IsNaN", FLAG)
    is_infinite = _operator("IsInf", FLAG)
    maximum = _operator("Max")
    minimum = _operator("Min")
    exp = _operator("Exp")
    log = _operator("Log")
    sqrt = _operator("Sqrt")
    tanh = _operator("Tanh")
    abs = _operator("Abs")
    floor = _operator("Floor")
    round = _operator("Round")

    def sigmoid(self) -> Node:
        """Not ONNX's `Sigmoid`: ONNX Runtime approximates it with a bounded absolute, not relative, error."""
        return ((-self).exp() + 1.0).apply("Reciprocal")

    def softplus(self) -> Node:
        """Not ONNX's `Softplus`: ONNX Runtime implements it in single precision only, and is slow in double."""
        return self.maximum(0.0) + ((-self.abs()).exp() + 1.0).log()

    def log_sigmoid(self) -> Node:
        return -(-self).softplus()

    def logit(self) -> Node:
        return self.log() - (-self + 1.0).log()

    def asinh(self) -> Node:
        """In double precision; ONNX Runtime implements `Asinh` in single precision only."""
        size = self.double().abs()
        most = size.maximum(1.0)  # so that no square overflows
        part, unit = size / most, most.apply("Reciprocal")
        found = most.log() + (part + (part * part + unit * unit).sqrt()).log()
        return (found * self.double().apply("Sign")).cast(self.dtype)

    def one_minus_exp(self) -> Node:
        """1 - exp(-x) for x > 0, in double precision; ONNX has no such operator."""
        x = self.double()
        return (x < 1e-5).where(x - x * x * 0.5, -(-x).exp() + 1.0).cast(self.dtype)

    def clip(self, low: Operand, high: Operand) -> Node:
        return self.maximum(low).minimum(high)

    def cast(self, dtype: np.dtype[Any]) -> Node:
        if dtype == self.dtype:
            return self
        return self.graph.op("Cast", self, dtype=dtype, to=dtype)

    def double(self) -> Node:
        return self.cast(DOUBLE)

    def where(self, yes: Operand, no: Operand) -> Node:
        """``yes`` where this flag is true, ``no`` elsewhere."""
        first = yes if isinstance(yes, Node) else self.graph.constant(yes, no.dtype if isinstance(no, Node) else None)
        return self.graph.op("Where", self, first, self.graph.like(no, first), dtype=first.dtype)

    def expand(self, shape: Operand) -> Node:
        return self.apply("Expand", self.graph.whole(shape))

    def unsqueeze(self, *axes: int) -> Node:
        value = self.graph.constants.get(self.name)
        if value is not None:
            return self.graph.constant(np.expand_dims(value, axes))
        return self.apply("Unsqueeze", self.graph.whole(list(axes)))

    def squeeze(self, *axes: int) -> Node:
        return self.apply("Squeeze", self.graph.whole(list(axes)))

    def reshape(self, *shape: int) -> Node:
        """0 keeps the size of an axis; -1 infers it."""
        return self.apply("Reshape", self.graph.whole(list(shape)))

    def transpose(self, *axes: int) -> Node:
        return self.graph.op("Transpose", self, perm=list(axes))

    def gather(self, index: Operand, axis: int = -1) -> Node:
        return self.graph.op("Gather", self, self.graph.whole(index), axis=axis)

    def slice(self, begin: int, end: int, axis: int = -1) -> Node:
        return self.apply("Slice", *(self.graph.whole([each]) for each in (begin, end, axis)))

    def _reduce(self, name: str, axis: int, keep: bool) -> Node:
        return self.graph.op(name, self, self.graph.whole([axis]), keepdims=int(keep))

    def sum(self, axis: int = -1, *, keep: bool = False) -> Node:
        return self._reduce("ReduceSum", axis, keep)

    def max(self, axis: int = -1, *, keep: bool = False) -> Node:
        return self._reduce("ReduceMax", axis, keep)

    def min(self, axis: int = -1, *, keep: bool = False) -> Node:
        return self._reduce("ReduceMin", axis, keep)

    def logsumexp(self, axis: int = -1) -> Node:
        return self._reduce("ReduceLogSumExp", axis, False)

    def any(self, axis: int = -1) -> Node:
        return self.cast(WHOLE).max(axis) > 0

    def all(self, axis: int = -1) -> Node:
        return self.cast(WHOLE).min(axis) > 0

    def cumsum(self, axis: int = -1) -> Node:
        return self.apply("CumSum", self.graph.whole(axis))

    def log_softmax(self) -> Node:
        return self.graph.op("LogSoftmax", self, axis=-1)

    def softmax(self) -> Node:
        return self.graph.op("Softmax", self, axis=-1)

    def logaddexp(self, other: Node) -> Node:
        """For finite numbers only: represent minus infinity by a large negative number."""
        most = self.maximum(other)
        return most + ((self - most).exp() + (other - most).exp()).log()


Operand: TypeAlias = Node | ArrayLike


class Graph:
    """Operators in the order in which they are evaluated, and constants by name.

    Arguments:
        taken: names of inputs and outputs.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.operations: list[Operation] = []
        self.constants: dict[str, Array] = {}
        self._known: dict[tuple[str, tuple[int, ...], bytes], Node] = {}
        self._taken = set(taken)
        self._numbers = count()

    def name(self) -> str:
        """A name that no other node has."""
        return next(name for number in self._numbers if (name := f"node {number}") not in self._taken)

    def constant(self, value: ArrayLike, dtype: np.dtype[Any] | None = None) -> Node:
        array = np.asarray(value, dtype=dtype, order="C")
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._known:
            self._known[key] = Node(self, self.name(), array.dtype)
            self.constants[self._known[key].name] = array
        return self._known[key]

    def whole(self, value: Operand) -> Node:
        """Whole numbers, such as a shape or an index."""
        return value if isinstance(value, Node) else self.constant(value, WHOLE)

    def like(self, value: Operand, node: Node) -> Node:
        """A node, or a constant of the dtype of another node."""
        return value if isinstance(value, Node) else self.constant(value, node.dtype)

    def op(
        self,
        name: str,
        first: Node,
        *others: Operand,
        dtype: np.dtype[Any] | None = None,
        domain: str = "",
        **more: Any,
    ) -> Node:
        """The result of an operator, of the dtype of its first input by default."""
        inputs = (first, *(self.like(other, first) for other in others))
        output = Node(self, self.name(), first.dtype if dtype is None else dtype)
        names = tuple(node.name for node in inputs)
        self.operations.append(Operation(name, names, (output.name,), domain, more))
        return output

    def concat(self, parts: Sequence[Node]) -> Node:
        """Nodes side by side, along the last axis."""
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=-1)

    def repeat(self, times: int, state: Sequence[Node], step: Callable[[list[Node]], Sequence[Node]]) -> list[Node]:
        """The state after ``times`` steps of a loop."""
        outside, self.operations = self.operations, []
        counter, going = Node(self, self.name(), WHOLE), Node(self, self.name(), FLAG)
        inputs = [Node(self, self.name(), node.dtype) for node in state]
        outputs = [going.apply("Identity"), *step(inputs)]
        body = {"operations": self.operations, "inputs": [counter, going, *inputs], "outputs": outputs}
        self.operations = outside
        found = [Node(self, self.name(), node.dtype) for node in state]
        names = (self.constant(times, WHOLE).name, self.constant(True, FLAG).name, *(node.name for node in state))
        self.operations.append(Operation("Loop", names, tuple(node.name for node in found), "", {"body": body}))
        return found

    def used(self) -> set[str]:
        """The names of all nodes that operators take."""
        return {name for each in _all(self.operations) for name in each.inputs}


def _all(operations: Iterable[Operation]) -> Iterator[Operation]:
    for operation in operations:
        yield operation
        yield from _all(operation.attributes.get("body", {}).get("operations", ()))
