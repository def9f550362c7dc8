"""config.json: the parameters, columns and scores of a model, validated."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from made._version import __version__
from made.display import shortened
from made.errors import ModelError
from made.network.connectivity import Connectivities
from made.network.limits import check_sizes
from made.network.masked import Network
from made.network.weights import weight_shapes
from made.parameters import LATER
from made.queries.ensemble import Ensemble
from made.tables.field import Field
from made.tables.schema import Schema
from made.training.trainer import Trainer

MOST_SEGMENTED = 128  # columns; up to this many, segments="auto" evaluates each column in its own pass


@dataclass(frozen=True, kw_only=True)
class Data:
    """The number of training and validation rows, and a fingerprint of them."""

    rows: int
    valid_rows: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Config:
    """The content of config.json."""

    made: str
    seed: int
    parameters: dict[str, Any]
    columns: list[dict[str, Any]]
    named: bool
    dropped: dict[str, int] = field(default_factory=dict)
    container: str
    target: str | None = None
    digest: str
    data: Data
    scores: dict[str, float | int | None] = field(default_factory=dict)
    exclusive: dict[str, Any] | None = None  # sizes of groups of columns, and rows, of :meth:`Columns.exclusive`
    mask_weights: list[float] | None = None  # of the masks for whole rows (:mod:`made.training.mixing`)
    by_column: bool | None = None  # whether new rows are drawn a column at a time
    orders: list[list[int]] | None = None  # selected orderings of whole rows (:mod:`made.training.orders`)
    view: dict[str, Any] | None = None  # of :class:`made.model.view.View`: the codes that are given, and the columns

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", LATER | self.parameters)

    @classmethod
    def from_json(cls, content: Any) -> Config:
        """The config in an untrusted JSON object; the first entry that is wrong is a ValueError."""
        entries = _checked(cls, content, ENTRIES, "config")
        return cls(**entries | {"data": Data(**_checked(Data, entries["data"], DATA_ENTRIES, "data"))})

    def to_json(self) -> dict[str, Any]:
        """The JSON object that :meth:`from_json` reads."""
        optional = ("by_column", "exclusive", "mask_weights", "orders", "view")
        return {name: value for name, value in asdict(self).items() if name not in optional or value is not None}

    @cached_property
    def schema(self) -> Schema:
        """The columns of the table."""
        return Schema([Field.from_json(each) for each in self.columns], self.named, self.dropped)

    @cached_property
    def known(self) -> NDArray[np.float64]:
        """The codes that are given, NaN for all other columns; null is infinity, a missing number. Shape: (columns)."""
        codes = np.full(len(self.columns), np.nan)
        for name, code in ({} if self.view is None else self.view["given"]).items():
            codes[self.schema.names.index(name)] = math.inf if code is None else code
        return codes

    @cached_property
    def kept(self) -> list[int]:
        """The columns of the view: all that are neither given nor left out."""
        names = self.schema.names
        chosen = names if self.view is None else self.view["columns"]
        kept = [names.index(name) for name in chosen]
        if len(set(kept)) < len(kept) or not kept or not np.isnan(self.known[kept]).all():
            raise ValueError("its 'view' should list each column at most once, and no given column.")
        return kept

    @cached_property
    def connectivities(self) -> Connectivities:
        """The family of connectivities."""
        parameters, masks = self.parameters, self.parameters["masks"]
        return Connectivities(
            len(self.columns),
            tuple(parameters["hidden_sizes"]),
            masks=None if masks == "unlimited" else masks,
            **{name: parameters[name] for name in ("resample", "residual")},
            ordering="random" if parameters["ordering"] == "selected" else parameters["ordering"],
            whole_rows=self.whole_row_masks if parameters["whole_rows"] else 0,
            incomplete_rows=parameters["incomplete_rows"] > 0,
            groups=None if self.exclusive is None else tuple(self.exclusive["sizes"]),
            orders=() if self.orders is None else tuple(map(tuple, self.orders)),
            weights=() if self.mask_weights is None else tuple(self.mask_weights),
            seed=self.seed,
        )

    @property
    def whole_row_masks(self) -> int:
        """The number of masks for whole rows. Folders of earlier versions have those that a query averages."""
        masks = self.parameters["whole_row_masks"]
        return int(self.parameters["evaluation_masks"] if masks == "auto" else masks)

    def network(self) -> Network:
        """The network with its initial weights, and with the connectivities that were trained."""
        parameters, family = self.parameters, self.connectivities
        if family.digest() != self.digest:
            raise ModelError("the connectivities of this model cannot be reproduced by this version of made.")
        names = ("activation", "direct", "conditioning", "dropout", "input_dropout", "initialization", "calibrate")
        options = {name: parameters[name] for name in names}
        columns = self.schema.coded(signed=parameters["signed"])
        columns = columns if self.exclusive is None else columns.exclusive(**self.exclusive)
        network = Network(columns, family, **options)
        return network.to(getattr(torch, parameters["dtype"]))

    def ensemble(self, network: Network) -> Ensemble:
        """The network with the number of masks and of segments that the parameters ask for."""
        return Ensemble(
            network,
            number_of_masks(network.connectivities, self.parameters["evaluation_masks"]),
            number_of_segments(network.connectivities, self.parameters["segments"]),
            bool(self.by_column),
        )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each weight, without allocating any."""
        options = {name: self.parameters[name] for name in ("direct", "conditioning", "calibrate")}
        return weight_shapes(self.schema.columns, self.parameters["hidden_sizes"], **options)

    def with_orders(self, orders: list[list[int]] | None) -> Config:
        """This config with selected orderings of whole rows."""
        chosen = replace(self, orders=orders, mask_weights=None)
        return replace(chosen, digest=chosen.connectivities.digest())

    def with_scores(self, trainer: Trainer, nll: float | None) -> Config:
        """The config of the model that training ended with."""
        scores = {
            "valid_nll": None if nll is None or math.isnan(nll) else nll,
            "epochs": len(trainer.state.history),
            "best_epoch": trainer.best_epoch,
            "parameters": sum(weight.numel() for weight in trainer.network.state_dict().values()),
            "seconds": round(trainer.state.seconds, 3),
        }
        weights = trainer.network.connectivities.weights
        shares = list(weights) if weights else None
        return replace(self, scores=scores, mask_weights=shares, by_column=trainer.by_column or None)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_object(value: Any, holds: Callable[[Any], bool] = lambda value: True) -> bool:
    """Whether this is a JSON object whose values all pass a test."""
    return isinstance(value, dict) and all(map(holds, value.values()))


def _is_view(value: Any) -> bool:
    if not (_is_object(value) and value.keys() == {"given", "columns"} and isinstance(value["columns"], list)):
        return False
    known = value["given"]
    return all(map(_is_text, value["columns"])) and _is_object(
        known, lambda code: code is None or (isinstance(code, (int, float)) and not isinstance(code, bool))
    )


def _is_exclusive(value: Any) -> bool:
    if not (_is_object(value) and value.keys() == {"sizes", "rows"} and isinstance(value["sizes"], list)):
        return False
    return all(_is_whole(each) and 1 <= each < 2**63 for each in (*value["sizes"], value["rows"]))


def _is_orders(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, list) and all(map(_is_whole, each)) for each in value)


# For each entry a test of its value, and what it should be, in words.
Entries: TypeAlias = Mapping[str, tuple[Callable[[Any], bool], str]]
ENTRIES: Entries = {
    "made": (_is_text, "text"),
    "seed": (lambda value: _is_whole(value) and 0 <= value < 2**63, "a whole number from 0 to 2^63 - 1"),
    "parameters": (_is_object, "an object"),
    "columns": (
        lambda value: isinstance(value, list) and value != [] and all(map(_is_object, value)),
        "a list of objects",
    ),
    "named": (lambda value: isinstance(value, bool), "true or false"),
    "dropped": (lambda value: _is_object(value, _is_whole), "an object of whole numbers"),
    "container": (_is_text, "text"),
    "target": (lambda value: value is None or _is_text(value), "text or null"),
    "digest": (_is_text, "text"),
    "data": (_is_object, "an object"),
    "scores": (
        lambda value: _is_object(value, lambda each: each is None or _is_whole(each) or isinstance(each, float)),
        "an object of numbers and nulls",
    ),
    "exclusive": (_is_exclusive, "an object with the sizes of groups, and a number of rows"),
    "by_column": (lambda value: isinstance(value, bool), "true or false"),
    "mask_weights": (
        lambda value: isinstance(value, list) and all(isinstance(each, float) and 0 <= each <= 1 for each in value),
        "a list of shares",
    ),
    "orders": (_is_orders, "lists of whole numbers"),
    "view": (_is_view, "an object with the codes that are given, and a list of columns"),
}
DATA_ENTRIES: Entries = {
    "rows": (lambda value: _is_whole(value) and value >= 1, "a whole number, at least 1"),
    "valid_rows": (lambda value: _is_whole(value) and value >= 0, "a whole number, at least 0"),
    "sha256": (_is_text, "text"),
}


def _checked(kind: type[Config | Data], content: Any, entries: Entries, what: str) -> dict[str, Any]:
    """The entries of an untrusted JSON object, all of the types that the fields of a dataclass need."""
    if not isinstance(content, dict):
        raise ValueError(f"its {what} should be an object, not {shortened(repr(content), 80)}.")
    for each in fields(kind):
        if each.name not in content and each.default is MISSING and each.default_factory is MISSING:
            raise ValueError(f"its {what} lacks {each.name!r}.")
    for name, value in content.items():
        if name not in entries:
            raise ValueError(f"its {what} should not have {shortened(name, 80)!r}.")
        sound, wanted = entries[name]
        if not sound(value):
            raise ValueError(f"its {what}: {name!r} should be {wanted}, not {shortened(repr(value), 80)}.")
    return content


def number_of_masks(family: Connectivities, evaluation_masks: int) -> int | None:
    """The number of masks that a query averages; ``None`` for all of a finite list."""
    return evaluation_masks if family.masks is None and not family.single else None


def number_of_segments(family: Connectivities, segments: int | str) -> int:
    """The number of segments that an ordering is cut into; ``"auto"`` is one for each column if these are few."""
    if segments == "auto":
        return family.positions if family.any_order and family.positions <= MOST_SEGMENTED else 1
    return min(int(segments), family.positions)


def data_digest(*tables: NDArray[Any] | None) -> str:
    """A fingerprint of the rows, so that a run is only resumed on the data it was started on."""
    sha = hashlib.sha256()
    for table in tables:
        sha.update(b"none" if table is None else np.ascontiguousarray(table, dtype="<f8").tobytes())
    return sha.hexdigest()


def new_config(
    parameters: Mapping[str, Any],
    seed: int,
    schema: Schema,
    container: str,
    data: Data,
    target: str | None = None,
    exclusive: Mapping[str, Any] | None = None,
) -> Config:
    """A config with the digest of its connectivities; a network too large for any machine is refused first."""
    check_sizes(parameters, len(schema.fields))
    draft = Config(
        made=__version__,
        seed=seed,
        parameters=dict(parameters),
        columns=[each.to_json() for each in schema.fields],
        named=schema.named,
        dropped=schema.dropped,
        container=container,
        target=target,
        digest="",
        data=data,
        exclusive=None if exclusive is None else dict(exclusive),
    )
    return replace(draft, digest=draft.connectivities.digest())
