"""The streams of random numbers that models depend on: one table, so that no two uses share a stream by accident.

A stream is a word of the counter of Philox (Salmon, Moraes, Dror and Shaw, 2011). Its numbers are a function of the
seed, the stream and a number such as that of an update, the same on every platform and in every version of numpy. A
stream is never renumbered: the weights of a run that is resumed, and the masks of a saved model, depend on it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

CONNECTIVITY = 0  # orderings and degrees, by mask and layer
ROW_ORDER = 1  # the order of the rows, by epoch
DROPOUT = 2  # by update
QUERY = 3  # what random queries give and ask for, by update
HELD_OUT = 4  # the rows that are held out for validation
ORDERINGS = 5  # of the estimate of validation rows
TRIAL = 5  # the parameters of a trial of a search, which no model depends on
WHOLE_ROW, WHOLE_ROW_MASK = 6, 7  # whether an update is for whole rows, and its mask
ENTRIES = 8  # the entries of rows that are given or hidden, by update
CALIBRATION, WEIGHTS, MISSING = 9, 10, 11  # calibration, the rounding of row weights, and the model of missing values
SAMPLE = 12  # the rows of a long table that a schema is inferred from
SPREAD = 13  # the rows that stand for all of a long table
CANDIDATE = 14  # orderings of which some are selected
BY_COLUMN = 15  # orderings of an estimate by validation rows


def philox(seed: int, stream: int, number: int = 0, part: int = 0) -> np.random.Philox:
    """The generator of a stream; ``number`` counts epochs, updates or masks.

    Example:
        >>> int(philox(0, ROW_ORDER, number=3).random_raw() >> 54)
        727
    """
    return np.random.Philox(key=seed, counter=np.array([0, part, number, stream], dtype=np.uint64))


@lru_cache(maxsize=256)
def random_bits(seed: int, stream: int, number: int = 0) -> int:
    """63 random bits of a stream, such as the seed of a generator."""
    return int(philox(seed, stream, number).random_raw() >> 1)
