"""Which rows of a table satisfy a condition, to compare its frequency with its probability under a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from made.ask.boxes import Boxes, boxes_of, columns_of
from made.ask.expressions import Query
from made.ask.parser import parse
from made.columns.base import MISSING
from made.tables.field import Field


def satisfied(question: str | Query, fields: Sequence[Field], codes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Whether each coded row satisfies what is asked, 1 or 0; NaN where what is given does not hold, or a value of a
    column in the question is missing. Shapes: (rows, columns) to (rows).

    Example:
        >>> from made import Binary, Numeric
        >>> fields = [Field("sex", Binary(), ("f", "m"), dtype="text"), Field("age", Numeric(40, 10, step=1))]
        >>> satisfied("age < 30 | sex = f", fields, np.array([[0, 20.0], [0, 40.0], [1, 20.0], [0, np.nan]]))
        array([ 1.,  0., nan, nan])
    """
    query = parse(question, fields)
    kinds = [field.column for field in fields]
    asked, given = boxes_of(query.asked, fields, kinds), boxes_of(query.given, fields, kinds)
    known = ~np.isnan(codes[:, sorted({*columns_of(asked), *columns_of(given)})]).any(axis=1)
    return np.where(known & _inside(given, codes), _inside(asked, codes).astype(np.float64), np.nan)


def _inside(boxes: Boxes, codes: NDArray[np.float64]) -> NDArray[np.bool_]:
    values = np.minimum(codes, MISSING)
    inside = np.zeros(len(codes), dtype=np.bool_)
    for box in boxes:
        here = np.ones(len(codes), dtype=np.bool_)
        for d, region in box.items():
            here &= np.any([(low <= values[:, d]) & (values[:, d] < high) for low, high in region], axis=0)
        inside |= here
    return inside
