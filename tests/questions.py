"""Tables, networks and a slow oracle for tests of questions."""

from __future__ import annotations

import torch

from fields import make_field
from made import Columns, Connectivities, Network
from made.ask.expressions import And, Membership, Missing, Not, Or, Range
from made.tables.dates import DAY

MORE = [
    make_field("day", "numeric", location=DAY, scale=10 * DAY, step=DAY, dtype="date"),
    make_field("seen", "numeric", location=0.0, scale=1e6, dtype="datetime"),
    make_field("quarter", "categorical", (0.0, 90 * DAY, 181 * DAY), dtype="date"),
    make_field("grade", "categorical", ("low", "mid", "high"), dtype="text", ordered=True, missing=True),
    make_field("town", "categorical", ("Bonn", "Kiel"), dtype="text", other=0.01),
    make_field("debt", "numeric", location=3.0, scale=1.5, curve=1.0, low=0.0, spikes=(0.0, 7.5), missing=True),
    make_field("children", "numeric", location=2.0, scale=1.0, step=1.0, low=0.0, dtype="int"),
]
DISCRETE = [
    make_field("a", "binary", ("no", "yes"), dtype="text"),
    make_field("b", "categorical", (0, 1, 2), dtype="int"),
    make_field("c", "categorical", ("x", "y", "z", "w"), dtype="text"),
    make_field("d", "binary", (False, True), dtype="bool"),
]
FAMILIES = {
    "any": {"masks": None},
    "one": {"masks": 1, "ordering": "random"},
    "list": {"masks": 3, "ordering": "random"},
    "degrees": {"masks": 2, "resample": "degrees"},
}


def holds(condition, row) -> bool:
    """Whether a row, a value for each name, fulfils a condition: the slow oracle."""
    if isinstance(condition, Not):
        return not holds(condition.part, row)
    if isinstance(condition, (And, Or)):
        return (all if isinstance(condition, And) else any)(holds(part, row) for part in condition.parts)
    value = row[condition.column]
    if isinstance(condition, Missing):
        return value is None
    if isinstance(condition, Membership):
        return value in condition.values
    if isinstance(condition, Range):
        above = condition.low < value if condition.low_operator == "<" else condition.low <= value
        return above and (value < condition.high if condition.high_operator == "<" else value <= condition.high)
    other = condition.value
    return {
        "=": lambda: value == other,
        "!=": lambda: value != other,
        "<": lambda: value < other,
        "<=": lambda: value <= other,
        ">": lambda: value > other,
        ">=": lambda: value >= other,
    }[condition.operator]()


def network_of(fields, family="any", seed=0, scale=0.5, **options):
    columns = Columns([field.column for field in fields], [field.name for field in fields])
    connectivities = Connectivities(len(fields), (16, 16), seed=seed, **FAMILIES[family])
    network = Network(columns, connectivities, direct=True, conditioning=True, **options).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():  # about what it is before training, so that scales stay sensible
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * scale)
    return network.eval()
