r"""Columns of one kind in a graph: codes to input units, and the log-likelihood that output units give.

The likelihood of a built-in kind has the form of :mod:`made.columns.form`. What depends on the values alone, the
target, is looked up in a table if the column has a list of values, so that any kind with a list and a form can be
exported. Numbers have formulas (:mod:`made.export.numbers`). As in :mod:`made.columns.fused`, units and the targets
have the dtype of the network, and numbers of the table are in double precision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray

from made.columns.base import Column
from made.columns.form import Form
from made.columns.logistics import LARGEST_LOG_SCALE, TINY
from made.errors import QuestionError
from made.export.graph import Graph, Node

# The logarithm of zero; infinity would give NaN in a sum of zeros.
NOTHING = -1e30


def array(values: Any) -> NDArray[np.float64]:
    """Numbers of a kind in double precision; minus infinity as :data:`NOTHING`."""
    found = np.asarray(torch.as_tensor(values, dtype=torch.float64).cpu().numpy())
    return np.where(np.isneginf(found), NOTHING, found)


class TargetNodes(NamedTuple):
    """:class:`made.columns.form.Target`, (rows, columns); ``None`` for what is not needed."""

    choice: Node
    log_choice: Node
    log_floor: Node | None = None
    log_rest: Node | None = None
    begin: Node | None = None
    width: Node | None = None
    wide: Node | None = None
    log_factor: Node | None = None
    log_far: Node | None = None


class Rule(ABC):
    """Columns of one family in a graph.

    Arguments:
        graph: where the nodes are added.
        kinds: the kinds of the columns, of one family.
        dtype: the dtype of the network.
    """

    def __init__(self, graph: Graph, kinds: Sequence[Column], dtype: np.dtype[Any]) -> None:
        self.graph, self.kinds, self.dtype = graph, kinds, dtype
        kind = kinds[0]
        form = kind.form
        if form is None and kind.codes != 1:
            raise QuestionError(
                f"columns of the kind {kind.kind!r} cannot be exported: their likelihood is computed by Python code, "
                "and has no 'form'."
            )
        self.form = form or Form(0)

    @abstractmethod
    def encode(self, codes: Node) -> Node:
        """Codes to input units. Shapes: (rows, columns) to (rows, columns, inputs)."""

    @abstractmethod
    def target(self, codes: Node) -> TargetNodes:
        """What codes ask of the output units. Shape: (rows, columns)."""

    def log_prob(self, units: Node, codes: Node) -> Node:
        """The log-likelihood. Shapes: (masks, rows, columns, outputs), (rows, columns) to (masks, rows, columns)."""
        target, form = self.target(codes), self.form
        chosen, log_pi = self._choice(units, target)
        if not form.components:
            return chosen if target.log_floor is None else chosen.logaddexp(target.log_floor)
        assert target.log_rest is not None
        rest = self._mixture(units.slice(form.choices, form.choices + 3 * form.components), target) + target.log_rest
        if log_pi is None:
            return rest
        return chosen.logaddexp(rest + log_pi.slice(form.choices - 1, form.choices).squeeze(-1))

    def _choice(self, units: Node, target: TargetNodes) -> tuple[Node, Node | None]:
        """The log probability of what is chosen, and of all choices."""
        choices = self.form.choices
        if choices == 0:
            return target.log_choice.unsqueeze(0), None
        if choices == 1:
            return (units.squeeze(-1) * (target.choice * 2.0 - 1.0)).log_sigmoid() + target.log_choice, None
        log_pi = units.slice(0, choices).log_softmax()
        chosen = target.choice.unsqueeze(-1).equals(np.arange(choices)).cast(self.dtype)
        return (log_pi * chosen).sum() + target.log_choice, log_pi

    def _mixture(self, units: Node, target: TargetNodes) -> Node:
        """log R of a mixture of logistics. Shapes: (masks, rows, columns, units) to (masks, rows, columns)."""
        begin, width, wide, factor, far = cast(tuple[Node, ...], target[4:])
        forms = [kind.form for kind in self.kinds]
        least, learned, low, wide_above = (
            np.array([getattr(form, name) or 0.0 for form in forms])
            for name in ("least_scale", "learned", "low", "wide_above")
        )
        count = self.form.components
        logit, mean, log_scale = (units.slice(part * count, (part + 1) * count) for part in range(3))
        share = logit.softmax()
        per_scale = (log_scale.minimum(LARGEST_LOG_SCALE).exp() + least[:, None]).apply("Reciprocal")
        below = ((mean - begin.unsqueeze(-1)) * per_scale).sigmoid()
        above = ((-mean + (begin + width).unsqueeze(-1)) * per_scale).sigmoid()
        area = per_scale
        if self.form.stepped:
            area = (per_scale * width.unsqueeze(-1)).one_minus_exp()
        total = ((share * below * above * area).sum() * learned + wide).maximum(TINY)
        log_p = total.log() + factor
        if self.form.low is not None:
            over = ((mean - low[:, None]) * per_scale).sigmoid()
            log_p = log_p - ((share * over).sum() * learned + wide_above).maximum(TINY).log()
        return log_p.logaddexp(far)


class Listed(Rule):
    """Columns with a list of values: tables of input units and of targets."""

    def encode(self, codes: Node) -> Node:
        tables = np.stack([array(kind.encode(self._codes())) for kind in self.kinds])  # (columns, codes, inputs)
        one_hot = self._one_hot(codes)
        if (tables == np.eye(*tables.shape[1:])).all():
            return one_hot
        return (one_hot.transpose(1, 0, 2) @ tables).transpose(1, 0, 2)

    def target(self, codes: Node) -> TargetNodes:
        choice, log_choice, log_floor = self._tables()
        same = (choice == np.arange(choice.shape[1])).all()
        found = TargetNodes(
            codes.cast(self.dtype) if same else self._looked_up(codes, choice), self._looked_up(codes, log_choice)
        )
        return found if (log_floor == NOTHING).all() else found._replace(log_floor=self._looked_up(codes, log_floor))

    def log_shares(self, units: Node) -> Node:
        """The log-likelihood of each code of one column. Shapes: (masks, rows, outputs) to (masks, rows, codes)."""
        choice, log_choice, log_floor = (table[0] for table in self._tables())
        log_pi = units.log_softmax()
        if self.form.choices == 1:
            log_pi = self.graph.concat([-units, units]).log_sigmoid()
        found: Node = log_pi.gather(choice.astype(np.int64)) + log_choice
        return found if (log_floor == NOTHING).all() else found.logaddexp(self.graph.like(log_floor, found))

    def _tables(self) -> list[NDArray[np.float64]]:
        """The number of the choice, log a and log c of each code, (columns, codes)."""
        targets = [kind.target(self._codes()) for kind in self.kinds]
        names = ("choice", "log_choice", "log_floor")
        return [np.stack([array(getattr(each, name)) for each in targets]) for name in names]

    def _codes(self) -> torch.Tensor:
        return torch.arange(self.kinds[0].codes, dtype=torch.float64)

    def _one_hot(self, codes: Node) -> Node:
        places = np.arange(self.kinds[0].codes, dtype=np.float64)
        return codes.unsqueeze(-1).equals(places).cast(self.dtype)

    def _looked_up(self, codes: Node, table: NDArray[np.float64]) -> Node:
        """The numbers of the codes in a table, (columns, codes)."""
        if (table == table[:, :1]).all():
            return self.graph.constant(table[:, 0], self.dtype)
        return (self._one_hot(codes) * table).sum()
