r"""A network and the masks that its answers average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from made.network.masked import Network
from made.parameters import check_integer
from made.queries.schedule import PassSchedule


@dataclass(frozen=True, eq=False)
class Ensemble:
    r"""What every query takes: a network, and how many passes an answer may cost.

    The probability of a row x is the mean over R masks, :math:`p(x) = \frac{1}{R} \sum_r p_r(x)`.

    Arguments:
        network: the network.
        masks: how many masks of an unlimited supply to average (default: 16), or the numbers of some masks. A finite
            list is averaged in full by default.
        segments: the number of segments that an any-order model cuts an ordering into (see
            :mod:`made.queries.schedule`). 1, the default, is MADE; as many as there are columns is EoNADE.
        by_column: whether new rows are drawn a column at a time, each in an ordering of its own, instead of under the
            masks for whole rows.

    Attributes:
        schedule: the passes of every query.

    Example:
        >>> from made import Connectivities, Network
        >>> Ensemble(Network(3, Connectivities(3, (8,), masks=None)), masks=4).numbers
        [0, 1, 2, 3]
    """

    network: Network
    masks: int | Sequence[int] | None = None
    segments: int = 1
    by_column: bool = False
    schedule: PassSchedule = field(init=False, repr=False)

    def __post_init__(self) -> None:
        family, segments = self.network.connectivities, check_integer("segments", self.segments, 1)
        if segments > 1 and not family.any_order:
            raise ValueError("'segments' above 1 needs a network of unlimited masks with resampled orderings.")
        if self.by_column and not (family.any_order and self.network.depth):
            raise ValueError("'by_column' needs hidden layers, and unlimited masks with resampled orderings.")
        object.__setattr__(self, "schedule", PassSchedule(family, family.numbers(self.masks), segments))

    @property
    def numbers(self) -> list[int]:
        """The numbers of the masks."""
        return list(self.schedule.numbers)

    @property
    def any_order(self) -> bool:
        """Whether any set of columns can be given, asked for, or left out."""
        return self.network.connectivities.any_order

    @property
    def one_by_one(self) -> bool:
        """Whether a pass evaluates one column, given all columns before it (:mod:`made.queries.incremental`)."""
        return self.segments >= self.network.connectivities.positions > 1 and self.network.depth > 0

    @property
    def cardinalities(self) -> list[int]:
        """The number of values of each column that can be shown; 0 for a column of numbers."""
        return [kind.cardinality for kind in self.network.columns]

    @property
    def in_double(self) -> Ensemble:
        """The same masks of the network in double precision."""
        network = self.network.in_double()
        return self if network is self.network else replace(self, network=network)

    def with_masks(self, numbers: Sequence[int]) -> Ensemble:
        """The same network under some masks only."""
        return replace(self, masks=numbers)
