"""All that is known of one column of a person's table, as a model's config.json has it.

It may come from a file, so that nothing in it is believed before it is checked.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np

from made.columns.base import Column
from made.columns.discrete import Binary, Categorical
from made.columns.logistic import Numeric
from made.columns.ordinal import Ordinal
from made.columns.point_masses import PointMasses
from made.columns.transform import FARTHEST
from made.columns.unseen import Unseen
from made.errors import DataError
from made.tables.dates import Temporal, in_text, objects
from made.tables.plain import Dtype
from made.tables.storage import is_storage

__all__ = ["KINDS", "OTHER", "Facts", "Kind"]

Kind: TypeAlias = Literal["binary", "categorical", "ordinal", "numeric"]

KINDS: tuple[Kind, ...] = get_args(Kind)

TYPES: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "date": (float, int),
    "datetime": (float, int),
}
# What text stands for that is not among the values, where that is allowed.
OTHER = "<other>"

# What a numeric column may have, so that its likelihood stays within single precision.
FARTHEST_BENT = 1e4  # numbers on a curved scale are logarithms: those of all floats are below 1500
NARROWEST, WIDEST = 1e-30, 1e30

# Keys that the first models did not have, what is true of these, and the kinds that they are for.
LATER: dict[str, Any] = {
    "curve": 0.0,
    "center": 0.0,
    "low": None,
    "spikes": (),
    "ordered": False,
    "missing": False,
    "other": 0.0,
    "share": None,
    "storage": None,
}
OWNERS = {
    "storage": KINDS,
    "ordered": ("categorical",),
    "missing": ("categorical", "numeric"),
    "other": KINDS,
    "share": ("binary",),
}


@dataclass(frozen=True)
class Facts:
    """One column: its name, its kind, and what its codes stand for.

    Arguments:
        name: of the column.
        kind: ``"binary"``, ``"categorical"``, ``"ordinal"`` or ``"numeric"``.
        values: what the codes 0, 1, ... stand for; none if numeric.
        location, scale: of a numeric column, see :class:`made.columns.logistic.Numeric`.
        step: how far apart numbers are; 0 for real numbers.
        dtype: how values are given back: ``"float"``, ``"int"``, ``"bool"``, ``"text"``, ``"date"`` or ``"datetime"``.
        curve, center: of a numeric column on a curved scale, see :mod:`made.columns.transform`.
        low: the least value of a numeric column; None if there is none.
        spikes: values of a numeric column that have a probability of their own, see :mod:`made.columns.point_masses`.
        ordered: whether the categories are in an order that says something.
        missing: whether what is not there is a value of its own; its code comes after those of the values.
        other: the least probability of values that training never saw: of a categorical column, that of one more
            category. 0: they are refused.
        share: of ones in a binary column whose input is standardised by it; None if it is not.
        storage: the exact type of the values, see :mod:`made.tables.storage`; None for the default of ``dtype``.
    """

    name: str
    kind: Kind
    values: tuple[str | float | int | bool, ...] = ()
    location: float = 0.0
    scale: float = 1.0
    step: float = 0.0
    dtype: Dtype = "float"
    curve: float = 0.0
    center: float = 0.0
    low: float | None = None
    spikes: tuple[float, ...] = ()
    ordered: bool = False
    missing: bool = False
    other: float = 0.0
    share: float | None = None
    storage: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise DataError(f"'name' should be text, not {self.name!r}.")
        for key, choices in (("kind", KINDS), ("dtype", tuple(TYPES))):
            if not isinstance(getattr(self, key), str) or getattr(self, key) not in choices:
                raise self._wrong(key, f"one of {', '.join(choices)}")
        for key in ("location", "scale", "step", "curve", "center", "low", "other", "share"):
            value = getattr(self, key)
            if key in ("low", "share") and value is None:
                continue
            if type(value) not in (int, float) or not _is_finite(value):
                raise self._wrong(key, "a finite number")
            object.__setattr__(self, key, float(value))
        for key, wrong, allowed in (
            ("scale", self.scale <= 0, "above 0"),
            ("step", self.step < 0, "at least 0"),
            ("curve", self.curve < 0, "at least 0"),
            ("other", not 0 <= self.other < 1, "at least 0 and below 1"),
            ("share", self.share is not None and not 0 < self.share < 1, "above 0 and below 1"),
            ("values", not isinstance(self.values, tuple), "a tuple"),
            ("spikes", not isinstance(self.spikes, tuple), "a tuple"),
            ("ordered", type(self.ordered) is not bool, "true or false"),
            ("missing", type(self.missing) is not bool, "true or false"),
            ("storage", self.storage is not None and not is_storage(self.storage), "the name of a type"),
        ):
            if wrong:
                raise self._wrong(key, allowed)
        self._check_values()
        self._check_kind()

    def _check_values(self) -> None:
        for value in self.values:
            if type(value) not in TYPES[self.dtype] or value == "" or not (isinstance(value, str) or _is_finite(value)):
                raise DataError(f"'values' of column {self.name!r} should be of type {self.dtype}, not {value!r}.")
        if float in TYPES[self.dtype]:
            object.__setattr__(self, "values", tuple(map(float, self.values)))
        if len(set(self.values)) != len(self.values):
            raise self._wrong("values", "different from each other")
        if not all(type(spike) in (int, float) and _is_finite(spike) for spike in self.spikes):
            raise self._wrong("spikes", "finite numbers")
        object.__setattr__(self, "spikes", tuple(map(float, self.spikes)))

    def _check_kind(self) -> None:
        numeric = self.kind == "numeric"
        if numeric and (self.values or self.dtype in ("text", "bool")):
            raise DataError(f"Column {self.name!r} is numeric: its 'values' should be (), its 'dtype' int or float.")
        if not numeric and (len(self.values) < 1 or (self.kind == "binary") > (len(self.values) == 2)):
            raise self._wrong("values", "two" if self.kind == "binary" else "at least one")
        if self.dtype in ("text", "bool") and (self.kind == "ordinal" or (self.kind == "binary" and self.other)):
            raise self._wrong("dtype", "that of numbers or dates")
        for key, plain in LATER.items():
            if getattr(self, key) != plain and self.kind not in OWNERS.get(key, ("numeric",)):
                raise self._wrong(key, f"{plain!r} where the column is {self.kind}")
        if self.other and OTHER in self.values:
            raise self._wrong("other", f"0, where one of the values is {OTHER}")
        if numeric:
            self._check_scale()
        try:
            self.column()
        except ValueError as error:
            raise DataError(f"column {self.name!r}: {error}") from None

    def _check_scale(self) -> None:
        """Refuse a scale on which values near the middle have no likelihood in single precision."""
        if self.curve:
            for key in ("location", "scale"):
                if abs(getattr(self, key)) > FARTHEST_BENT:
                    raise self._wrong(key, f"at most {FARTHEST_BENT:g} on a curved scale")
        if self.step:
            for key in ("step", "scale"):
                if not NARROWEST <= getattr(self, key) <= WIDEST:
                    raise self._wrong(key, f"from {NARROWEST:g} to {WIDEST:g} where values have steps")
            width = self._step_in_the_middle()
            if not NARROWEST <= width <= WIDEST:
                raise self._wrong("step", f"one that can be told from its neighbours on a scale of {self.scale:g}")

    def _step_in_the_middle(self) -> float:
        """How wide a step is about the middle, in standardised values; 0 if it is lost among the digits."""
        if not self.curve:
            return self.step / self.scale
        away = self.curve * math.sinh(max(min(self.location, FARTHEST), -FARTHEST))
        if self.step < 8 * max(math.ulp(self.center), math.ulp(away)):
            return 0.0
        below, above = (math.asinh((away + half) / self.curve) for half in (-self.step / 2, self.step / 2))
        return (above - below) / self.scale

    def _wrong(self, key: str, allowed: str) -> DataError:
        shown = repr(getattr(self, key))
        return DataError(f"'{key}' of column {self.name!r} should be {allowed}, not {shown[:200]}.")

    @property
    def temporal(self) -> Temporal | None:
        """Whether values are dates, and of which kind."""
        return self.dtype if self.dtype == "date" or self.dtype == "datetime" else None

    @property
    def origin(self) -> float:
        """Where the steps of a numeric column are counted from."""
        return self.center if self.curve else self.location

    @property
    def bucket(self) -> bool:
        """Whether there is one more category, for all values that training never saw."""
        return self.kind == "categorical" and self.other > 0

    @cached_property
    def beside(self) -> Unseen | None:
        """The numbers that are not among the values, if there is a list, and others are allowed."""
        if self.kind not in ("binary", "ordinal") or not self.other:
            return None
        return Unseen(tuple(map(float, self.values)), self.step, self.other)

    def column(self, signed: bool = True) -> Column:
        """The kind of column that the network takes; ``signed`` is for :class:`made.Binary` without a share."""
        if self.kind == "numeric":
            low = -math.inf if self.low is None else self.low
            rest = Numeric(self.location, self.scale, self.step, curve=self.curve, center=self.center, low=low)
            points = self.spikes + (math.inf,) * self.missing
            return PointMasses(rest, points) if points else rest
        if self.kind == "binary":
            return Binary(signed and self.share is None, self.share, self.beside)
        if self.kind == "ordinal":
            return Ordinal(tuple(map(float, self.values)), self.step, self.other)
        return Categorical(len(self.values) + self.missing + self.bucket, self.ordered, self.other)

    def labels(self, *, other: bool = False) -> tuple[Any, ...]:
        """What each code stands for: a value, a date as Python has it, or None for what is missing.

        The category for all values that training never saw comes last, if it is asked for.
        """
        values: tuple[Any, ...] = self.values
        if self.temporal:
            values = tuple(objects(np.array(self.values, dtype=np.float64), self.temporal).tolist())
        return values + (None,) * self.missing + (OTHER,) * (other and self.bucket)

    def about(self) -> str:
        """In a few words, what the values are."""
        if self.kind != "numeric":
            labels = ["missing" if label is None else str(label) for label in self.labels()]
            return ", ".join(labels[:8]) + (f", ... ({len(labels)} in all)" if len(labels) > 8 else "")
        kind = Numeric(self.location, self.scale, curve=self.curve, center=self.center)
        parts = [
            f"around {self.shown(kind.middle.item())}",
            f"spread {kind.spread:g}" + (" seconds" if self.temporal else ""),
        ]
        parts += [f"steps of {self.step:g}"] if self.step else []
        parts += [f"at least {self.shown(self.low)}"] if self.low is not None else []
        parts += ["often " + " or ".join(map(self.shown, self.spikes))] if self.spikes else []
        return ", ".join(parts + ["or missing"] * self.missing)

    def shown(self, value: float) -> str:
        """A number of this column, for messages."""
        return f"{value:g}" if self.temporal is None else str(in_text(np.array([value]), self.temporal)[0])

    def to_json(self) -> dict[str, Any]:
        """All of it as what JSON can hold; of the later keys, those that say something."""
        content = {**asdict(self), "values": list(self.values), "spikes": list(self.spikes)}
        return {key: each for key, each in content.items() if key not in LATER or getattr(self, key) != LATER[key]}

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """What :meth:`to_json` gave. Nothing else is taken."""
        keys = {field.name for field in fields(cls)} - LATER.keys()
        if not isinstance(content, dict) or content.keys() - LATER.keys() != keys:
            found = ", ".join(map(str, content)) if isinstance(content, dict) else type(content).__name__
            raise DataError(
                f"A column should have the keys {', '.join(sorted(keys))}, not {found[:200]}; it may have "
                f"{', '.join(LATER)}."
            )
        lists = {key: content.get(key, []) for key in ("values", "spikes")}
        for key, value in lists.items():
            if not isinstance(value, list):
                raise DataError(f"'{key}' of column {content['name']!r} should be a list.")
        return cls(**content | {key: tuple(value) for key, value in lists.items()})


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False
