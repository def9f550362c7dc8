"""Fake systems for tests of comparisons."""

from __future__ import annotations

import numpy as np

from made.baselines import LogProb
from made.compare.evaluate import compare
from made.compare.result import Result

ROWS = np.random.default_rng(0).integers(0, 2, (40, 12)).astype(np.uint8)


class Coins:
    """Each column by itself, as often one as in the training rows: exact, and a distribution."""

    size = 0

    def fit(self, train, valid, *, seconds=None):
        self.mean, self.size, self.seconds = (np.sum(train, axis=0) + 1) / (len(train) + 2), train.shape[1], seconds
        return self

    def log_prob(self, rows):
        rows = np.asarray(rows)
        return LogProb((rows * np.log(self.mean) + (1 - rows) * np.log1p(-self.mean)).sum(axis=1))

    def sample(self, n, *, seed=0):
        return (np.random.default_rng(seed).random((n, len(self.mean))) < self.mean).astype(np.uint8)


class Says(Coins):
    """Whatever it was told to say of any rows."""

    def __init__(self, values, kind="exact", standard_error=0.0):
        self.values, self.kind, self.standard_error = np.array(values, dtype=float), kind, standard_error

    def log_prob(self, rows):
        return LogProb(self.values, self.kind, self.standard_error)


class Fails(Coins):
    def fit(self, train, valid, *, seconds=None):
        raise RuntimeError("the dog ate it")


class Interrupted(Coins):
    def fit(self, train, valid, *, seconds=None):
        raise KeyboardInterrupt


class Clock:
    """A clock that goes on only when it is told to."""

    now = 100.0

    def __call__(self):
        return self.now


class Slow(Coins):
    """Needs so many seconds to train, but ends when it should, and some to score and to draw."""

    def __init__(self, clock, needs, score=0.0, draw=0.0):
        self.clock, self.needs, self.score, self.draw = clock, needs, score, draw

    def fit(self, train, valid, *, seconds=None):
        self.clock.now += self.needs if seconds is None else min(self.needs, seconds)
        return super().fit(train, valid, seconds=seconds)

    def log_prob(self, rows):
        self.clock.now += self.score
        return super().log_prob(rows)

    def sample(self, n, *, seed=0):
        self.clock.now += n * self.draw
        return super().sample(n, seed=seed)


class Guess(Coins):
    def log_prob(self, rows):
        return LogProb(super().log_prob(rows).values - 0.01, "estimate", 0.02)


def said(values, kind="exact", standard_error=0.0) -> Result:
    """The result of a system that says this of four test rows."""
    (result,) = compare({"it": Says(values, kind, standard_error)}, ROWS, ROWS, ROWS[:4])
    return result


def named(name: str, values, kind="exact", standard_error=0.0) -> Result:
    result = said(values, kind, standard_error)
    facts = {each: getattr(result, each) for each in result.__dataclass_fields__} | {"name": name, "title": name}
    return Result(**facts)
