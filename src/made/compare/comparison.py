r"""Which model is right for these rows? Several are trained on the same rows, and asked about the same others.

The score is the mean negative log-likelihood (NLL) of test rows, in nats. Its 95 % interval says how far another draw
of as many test rows might move it. All systems are asked about the *same* rows, so that two of them are told apart by
the mean difference row by row, :math:`\frac{1}{N} \sum_n \log q(x_n) - \log p(x_n)`, whose interval is often far
narrower than that of either: what makes a row hard makes it hard for both. Two intervals that overlap do not make two
systems equal; a difference whose interval has no zero in it does tell them apart.

What is not exact never counts as if it were. An estimate brings its own standard error into all intervals. A bound is
the most that an NLL can be: a system that looks worse by its bound is not known to be worse.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.baselines.binary_rows import check_binary
from made.baselines.protocol import Density, Floats, LikelihoodKind, LogProb
from made.baselines.scikit import Scikit
from made.errors import DataError
from made.tables.table import Table, holes

__all__ = [
    "Difference",
    "Result",
    "Setting",
    "compare",
    "decimals",
    "differences",
    "overlaps",
    "ranked",
    "sentences",
    "split",
    "zeros_and_ones",
]

FEWEST = 20  # rows to cut in three: two of them, the fewest that have a spread, are then for test
ROUGH = 30  # test rows below which a normal interval is not to be taken at its word
ALL_STATES = 10  # columns up to which the probabilities of all rows are added up
TRIED_COLUMNS, TRIED_ROWS = 8, 200  # on which a stranger has to show that its probabilities sum to one
CUT = 0.9  # of its time: what has trained so long was perhaps not done

Rows = NDArray[np.uint8]
Verdict = Literal["worse", "not told apart", "unknown"]


@dataclass(frozen=True)
class Result:
    """What became of one system; a number that is not known of it is NaN.

    Attributes:
        name: the short name that it was asked for by.
        title: what it is called.
        nll: the mean NLL of the test rows, in nats; of a bound, the most that it can be.
        ci95: half of the 95 % interval of that: over test rows, and over draws of an estimate.
        kind: ``"exact"``, ``"estimate"`` or ``"bound"``.
        standard_error: of ``nll``, as far as estimation is the reason; 0 if nothing is estimated.
        seconds: that training took.
        allowed: the seconds that training was told to end after; None for no limit.
        rows_per_second: how many test rows were scored in a second, all of them in one call.
        samples_per_second: how many new rows were drawn in a second, many of them in one call.
        parameters: how many numbers were learned; None if that is not known.
        epochs: how many passes over the rows that took, if it has such.
        error: why there is no NLL; None if there is one.
        remark: what else there is to say.
        log_prob: of each test row, for differences row by row.
    """

    name: str
    title: str
    nll: float = math.nan
    ci95: float = math.nan
    kind: LikelihoodKind | None = None
    standard_error: float = math.nan
    seconds: float = math.nan
    allowed: float | None = None
    rows_per_second: float = math.nan
    samples_per_second: float = math.nan
    parameters: int | None = None
    epochs: int | None = None
    error: str | None = None
    remark: str | None = None
    log_prob: Floats = field(default_factory=lambda: np.empty(0), repr=False, compare=False)

    @property
    def stopped(self) -> bool:
        """Whether the time may have ended its training."""
        return self.allowed is not None and self.seconds >= CUT * self.allowed

    @property
    def known(self) -> str:
        """How its NLL is known, in words; of an estimate with the standard error, of a bound with the direction."""
        error = f" (s.e. {self.standard_error:.2g})" if self.standard_error > 0 else ""
        if self.kind == "estimate":
            return f"estimate{error or ' (s.e. not known)'}"
        return f"upper bound{error}" if self.kind == "bound" else str(self.kind or "")

    def facts(self) -> dict[str, Any]:
        """All of it but the rows, for JSON; of a bound with the direction, and None for what is not known."""
        names = [name for name in self.__dataclass_fields__ if name != "log_prob"]
        values = {name: getattr(self, name) for name in names}
        direction = "the true NLL is this or lower" if self.kind == "bound" else None
        known = {
            name: None if isinstance(value, float) and math.isnan(value) else value for name, value in values.items()
        }
        return known | {"direction": direction, "stopped": self.stopped}


@dataclass(frozen=True)
class Difference:
    """A system against the best one, on the same rows.

    Attributes:
        name: of the system.
        best: the name of the best one.
        nll: by how much its NLL is above the best one's.
        ci95: half of the 95 % interval of that difference, row by row.
        overlap: whether the intervals of the two NLLs overlap.
        verdict: ``"worse"``, ``"not told apart"``, or ``"unknown"`` where a bound is all that there is.
    """

    name: str
    best: str
    nll: float
    ci95: float
    overlap: bool
    verdict: Verdict


@dataclass(frozen=True)
class Setting:
    """What was compared on: a name for the data, its size, and how the work was limited."""

    data: str
    columns: int
    train: int
    valid: int
    test: int
    seed: int = 0
    budget: float | None = None
    notes: tuple[str, ...] = ()


def compare(
    systems: Mapping[str, Density],
    train: ArrayLike,
    valid: ArrayLike,
    test: ArrayLike,
    *,
    budget: float | None = None,
    seed: int = 0,
    titles: Mapping[str, str] | None = None,
    begin: Callable[[str, float | None], None] | None = None,
    report: Callable[[Result], None] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Result]:
    """Train each system, one after the other, and ask it about the test rows.

    Whatever goes wrong in one system is in its result, and the others are not touched by it.

    Arguments:
        systems: by their names, none of them fitted.
        train: rows of zeros and ones to learn from.
        valid: rows to choose by.
        test: rows to be asked about, once.
        budget: seconds to train all of them in. A system is told to end after an equal part of what is left for it and
            those that come after it, so that fast ones leave their time to slow ones, and none has less than an equal
            part of all. Scoring and drawing come on top, and so does an estimator of scikit-learn's kind, which cannot
            be told to end.
        seed: of the rows that are drawn.
        titles: what systems are called, their names unless told.
        begin: told the name of a system that begins, and the seconds that it has.
        report: told each result as soon as it is there.
        clock: gives the seconds since some moment.

    Returns:
        A result for each system, in the order of the systems.

    Example:
        >>> from made.baselines import SYSTEMS
        >>> rows = np.array([[0, 0], [1, 1]] * 50)
        >>> (result,) = compare({"bernoulli": SYSTEMS["bernoulli"].factory(0)}, rows, rows, rows)
        >>> print(f"{result.nll:.2f}, {result.kind}")  # two coins
        1.39, exact
    """
    if budget is not None and not 0 < budget < math.inf:
        raise ValueError(f"'budget' should be seconds above 0, or None for no limit, not {budget!r}.")
    if not systems:
        raise ValueError("'systems' should have at least one system.")
    train = check_binary(train, "train")
    valid, test = check_binary(valid, "valid", train.shape[1]), check_binary(test, "test", train.shape[1])
    for rows, name in ((train, "train"), (test, "test")):
        if len(rows) < 2:
            raise DataError(f"'{name}' has {len(rows)} row, but at least 2 are needed for anything to vary.")
    results, left, waiting = [], budget, sum(not isinstance(each, Scikit) for each in systems.values())
    for name, system in systems.items():
        allowed = None if left is None or isinstance(system, Scikit) else left / waiting
        if begin is not None:
            begin(name, allowed)
        result = Result(name, (titles or {}).get(name, name), allowed=allowed)
        start = clock()
        result = _measure(system, result, train, valid, test, seed, clock)
        if left is not None and allowed is not None:
            # One that took longer than it was told to does so at nobody's cost.
            spent = clock() - start if math.isnan(result.seconds) else result.seconds
            left, waiting = left - min(spent, allowed), waiting - 1
        results.append(result)
        if report is not None:
            report(result)
    return results


def _measure(
    system: Density, result: Result, train: Rows, valid: Rows, test: Rows, seed: int, clock: Callable[[], float]
) -> Result:
    try:
        if isinstance(system, Scikit):
            _check_stranger(system, train, valid)
        start = clock()
        fitted = system.fit(train, valid, seconds=result.allowed)
        seconds = clock() - start
        size, epochs = int(fitted.size) or None, getattr(fitted, "epochs", None) or None
        result = replace(result, seconds=seconds, parameters=size, epochs=epochs)
        fitted.log_prob(test[:1])  # what is made once and kept is not to be timed
        start = clock()
        answer = fitted.log_prob(test)
        seconds = clock() - start
        _check(answer, test)
        _check_states(fitted, answer.kind, test.shape[1])
    except Exception as error:  # what strangers wrote may raise anything
        return replace(result, error=_reason(error))
    values = np.asarray(answer.values, dtype=np.float64)
    result = replace(
        result,
        nll=-float(values.mean()),
        ci95=_half(values, answer.standard_error),
        kind=answer.kind,
        standard_error=float(answer.standard_error),
        rows_per_second=len(test) / max(seconds, 1e-9),
        log_prob=values,
    )
    try:
        return replace(result, samples_per_second=_speed_of_samples(fitted, test.shape[1], seed, clock))
    except Exception as error:  # its likelihoods are as good as they were
        return replace(result, remark=f"no samples: {_reason(error)}")


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split()) or "no reason given"
    return text if isinstance(error, (ValueError, ArithmeticError)) else f"{type(error).__name__}: {text}"


def _half(values: Floats, *errors: float) -> float:
    """Half of the 95 % interval of a mean, wider by what is not known of it for other reasons."""
    return 1.96 * math.hypot(float(values.std(ddof=1)) / math.sqrt(len(values)), *errors)


def _check(answer: LogProb, rows: Rows) -> None:
    """Refuse what cannot be log-probabilities of these rows, and what does not say how it is known."""
    if not isinstance(answer, LogProb):
        raise TypeError(f"'log_prob' should give a LogProb, which says how it is known, not {type(answer).__name__}.")
    values = np.asarray(answer.values, dtype=np.float64)
    if values.shape != (len(rows),):
        raise ValueError(f"log p should have the shape ({len(rows)},), not {values.shape}.")
    if answer.kind not in ("exact", "estimate", "bound"):
        raise ValueError(f"log p should be of the kind exact, estimate or bound, not {answer.kind!r}.")
    if not 0 <= answer.standard_error < math.inf or (answer.kind == "exact" and answer.standard_error):
        raise ValueError(f"the standard error of log p, which is {answer.kind}, cannot be {answer.standard_error}.")
    if not (values < math.inf).all():
        row = int((~(values < math.inf)).argmax())
        raise ValueError(f"diverged: log p of test row {row} is {values[row]}.")
    if np.isneginf(values).any():
        row, count = int(np.isneginf(values).argmax()), int(np.isneginf(values).sum())
        raise ValueError(f"{count} of the test rows, row {row} the first, have probability 0: the NLL is infinite.")
    # An estimate may be above the truth. Anything else is refused if different rows have more than one between them.
    _, first = np.unique(rows, axis=0, return_index=True)
    with np.errstate(over="ignore"):
        total = float(np.exp(values[first]).sum())
    if answer.kind != "estimate" and total > 1.001:
        raise ValueError(
            f"these are no probabilities of rows: those of {len(first)} different ones sum to {total:.3g}, above 1. "
            "Is it a density over real numbers?"
        )


def _check_stranger(system: Scikit, train: Rows, valid: Rows) -> None:
    """Refuse an estimator whose scores are not log-probabilities of rows: densities, pseudo-likelihoods, odd scores.

    They may look like the best of all likelihoods. On all columns that could not be seen, so a copy of the estimator is
    tried on a few, where the probabilities of all rows can be added up.
    """
    if system.continuous:
        raise ValueError(
            "its score is the density of a row of real numbers, which can be as high as it likes, and not the "
            "probability of a row of zeros and ones: the two cannot be compared."
        )
    columns = np.flatnonzero(train[:TRIED_ROWS].any(axis=0) & ~train[:TRIED_ROWS].all(axis=0))[:TRIED_COLUMNS]
    if len(columns) == 0 or system.kind == "estimate":
        return
    try:
        tried = copy.deepcopy(system).fit(train[:TRIED_ROWS, columns], valid[:TRIED_ROWS, columns])
        _check_states(tried, system.kind, len(columns))
    except Exception as error:
        raise ValueError(f"tried on {len(columns)} of the columns: {_reason(error)}") from None


def _check_states(fitted: Density, kind: LikelihoodKind, columns: int) -> None:
    """Where columns are few, add up the probabilities of all rows that there can be."""
    if columns > ALL_STATES or kind == "estimate":
        return
    states = np.array(list(product([0, 1], repeat=columns)), dtype=np.uint8)
    with np.errstate(over="ignore"):
        total = float(np.exp(fitted.log_prob(states).values).sum())
    if not total < 1.001 or (kind == "exact" and total < 0.999):
        text = "to 1" if kind == "exact" else "to 1 at the most"
        raise ValueError(
            f"these are no probabilities of rows: those of all {len(states)} rows that there can be sum to "
            f"{total:.3g}, and should sum {text}."
        )


def _speed_of_samples(fitted: Density, columns: int, seed: int, clock: Callable[[], float]) -> float:
    """New rows in a second: 16 of them in a call; if that is soon done, 128; then 1024."""
    fitted.sample(1, seed=seed)
    count = 16
    while True:
        start = clock()
        drawn = np.asarray(fitted.sample(count, seed=seed))
        seconds = clock() - start
        if drawn.shape != (count, columns) or not ((drawn == 0) | (drawn == 1)).all():
            raise ValueError(f"'sample' should give {count} rows of {columns} zeros and ones, not {drawn.shape}.")
        if seconds >= 2 or count >= 1024:
            return count / max(seconds, 1e-9)
        count *= 8


def ranked(results: Sequence[Result]) -> list[Result]:
    """The best first; those that failed last."""
    return sorted(results, key=lambda each: math.inf if each.error else each.nll)


def differences(results: Sequence[Result]) -> list[Difference]:
    """Each system that has an NLL against the best of them, row by row; the nearest first.

    Example:
        >>> some = Result("a", "a", 1.0, 0.98, "exact", 0.0, log_prob=np.array([0.0, -1.0, -2.0]))
        >>> more = Result("b", "b", 1.5, 0.98, "exact", 0.0, log_prob=np.array([-0.5, -1.5, -2.5]))
        >>> differences([some, more])
        [Difference(name='b', best='a', nll=0.5, ci95=0.0, overlap=True, verdict='worse')]
    """
    scored = [each for each in ranked(results) if not each.error]
    found = []
    for each in scored[1:]:
        best = scored[0]
        lead = best.log_prob - each.log_prob
        nll, half = float(lead.mean()), _half(lead, best.standard_error, each.standard_error)
        verdict: Verdict = "worse" if nll > half else "not told apart"
        if each.kind == "bound":  # the best one's truth may be lower still, but so may be this one's
            verdict = "unknown"
        found.append(Difference(each.name, best.name, nll, half, _overlap(best, each), verdict))
    return found


def overlaps(results: Sequence[Result]) -> list[tuple[str, str]]:
    """The pairs of systems whose 95 % intervals overlap, the better one first."""
    scored = [each for each in ranked(results) if not each.error]
    return [(one.name, other.name) for one, other in combinations(scored, 2) if _overlap(one, other)]


def _overlap(one: Result, other: Result) -> bool:
    """Whether two intervals overlap; that of a bound has no lower end."""
    (low, high), (other_low, other_high) = _ends(one), _ends(other)
    return low <= other_high and other_low <= high


def _ends(result: Result) -> tuple[float, float]:
    return -math.inf if result.kind == "bound" else result.nll - result.ci95, result.nll + result.ci95


def decimals(halves: Sequence[float]) -> int:
    """How many decimals the narrowest interval deserves: two digits of it, from two decimals to four.

    Example:
        >>> decimals([0.48, 0.53]), decimals([0.0021, 0.48]), decimals([])
        (2, 4, 2)
    """
    narrowest = min((half for half in halves if half > 0), default=1.0)
    return min(max(1 - math.floor(math.log10(narrowest)), 2), 4)


def sentences(results: Sequence[Result], test: int) -> list[str]:
    """What may be concluded, in words."""
    scored = [each for each in ranked(results) if not each.error]
    failed = [f"{each.name} has no number: {each.error}" for each in results if each.error]
    if not scored:
        return failed
    best, against = scored[0], differences(results)
    own, places = decimals([each.ci95 for each in scored]), decimals([each.ci95 for each in against])
    said = [
        f"Best: {best.name}, with an NLL of {'at most ' if best.kind == 'bound' else ''}{best.nll:.{own}f} ± "
        f"{best.ci95:.{own}f} nats ({best.known}) on {test:,} test rows."
    ]
    for verdict, text in (
        ("not told apart", "Not told apart from it, row by row (the interval of the difference has 0 in it): "),
        ("worse", "Worse than it, row by row: "),
        ("unknown", "Not known to be worse than it, because only an upper bound is known, which is above: "),
    ):
        if some := [each for each in against if each.verdict == verdict]:
            by = [f"{each.name} by {each.nll:.{places}f} ± {each.ci95:.{places}f}" for each in some]
            said.append(f"{text}{', '.join(by)}.")
    if len(scored) > 1:
        others = {one.name: [each for name, each in overlaps(results) if name == one.name] for one in scored}
        pairs = "; ".join(f"{name} with {', '.join(some)}" for name, some in others.items() if some)
        said.append(f"95 % intervals that overlap: {pairs}." if pairs else "No two of the 95 % intervals overlap.")
    if stopped := [each.name for each in scored if each.stopped]:
        said.append(
            f"Training took all the time that it had, and may not have been done, of {', '.join(stopped)}: with a "
            "longer budget, that may become better."
        )
    if test < ROUGH:
        said.append(f"{test} test rows are few: an interval from fewer than {ROUGH} is rough.")
    said += [f"{each.name}: {each.remark}" for each in scored if each.remark]
    return said + failed


def split(count: int, parts: int, seed: int) -> list[NDArray[np.intp]]:
    """Which rows are to learn from, and which make one or two other parts, each a tenth of all, drawn by the seed.

    Example:
        >>> [len(part) for part in split(100, 2, seed=0)], [len(part) for part in split(100, 1, seed=0)]
        ([80, 10, 10], [90, 10])
    """
    if count < FEWEST:
        raise DataError(
            f"{count} row{'s are' if count != 1 else ' is'} too few to be cut into rows to learn from and rows to be "
            f"asked about: at least {FEWEST} are needed."
        )
    order, tenth = np.random.default_rng(seed).permutation(count), count // 10
    cuts = [order[: count - parts * tenth]]
    return cuts + [order[count - part * tenth :][:tenth] for part in range(parts, 0, -1)]


def zeros_and_ones(tables: Mapping[str, Any]) -> tuple[list[Rows], dict[str, tuple[Any, Any]]]:
    """Tables of the same columns, none of which has more than two values, as zeros and ones.

    Values other than 0 and 1 are coded in sorted order, the same in all tables: "no" is 0 and "yes" is 1.

    Arguments:
        tables: arrays or frames, by what errors are to call them.

    Returns:
        The tables, and of columns that had other values than 0 and 1 which two; a column of one value has it twice.

    Example:
        >>> zeros_and_ones({"mine": [["yes", 0], ["no", 1]]})
        ([array([[1, 0],
               [0, 1]], dtype=uint8)], {'column 0': ('no', 'yes')})
    """
    given = list(tables.values())
    if all(isinstance(each, np.ndarray) and each.ndim == 2 and np.isin(each, (0, 1)).all() for each in given):
        width = given[0].shape[1]
        if all(each.shape[1] == width for each in given):
            return [each.astype(np.uint8) for each in given], {}
    taken = {name: Table.of(each) for name, each in tables.items()}
    first = next(iter(taken.values()))
    coded = [np.zeros((table.rows, len(first.columns)), dtype=np.uint8) for table in taken.values()]
    places = [_places(first, table, name) for name, table in taken.items()]
    meanings: dict[str, tuple[Any, Any]] = {}
    for column in range(len(first.columns)):
        label = first.label(column)
        parts = [table.columns[place[column]] for table, place in zip(taken.values(), places, strict=True)]
        for name, part in zip(taken, parts, strict=True):
            if (hole := holes(part)).any():
                raise DataError(
                    f"{name}, row {int(hole.argmax())} (counted from 0), {label}: nothing is there, but only whole "
                    "rows can be compared. Leave out such rows, or columns; or fill them first (`made fit`, then "
                    "`made impute`)."
                )
        values = _two(parts, label)
        is_bool = all(
            table.dtypes[place[column]] == "bool" for table, place in zip(taken.values(), places, strict=True)
        )
        if is_bool or not set(values) <= {0, 1}:
            meanings[label] = (bool(values[0]), bool(values[-1])) if is_bool else (values[0], values[-1])
        high = 1.0 if set(values) <= {0, 1} else values[-1] if len(values) == 2 else None
        for matrix, part in zip(coded, parts, strict=True):
            matrix[:, column] = 0 if high is None else part == high
    return coded, meanings


def _places(first: Table, other: Table, name: str) -> list[int]:
    """Where a table has the columns of the first one: by name where both have names."""
    if first.names is not None and other.names is not None:
        if differing := sorted(set(first.names) ^ set(other.names)):
            raise DataError(f"{name} should have the same columns as the others, but {differing[0]!r} is not in all.")
        return [other.names.index(each) for each in first.names]
    if len(first.columns) != len(other.columns):
        raise DataError(f"{name} has {len(other.columns)} columns, where others have {len(first.columns)}.")
    return list(range(len(first.columns)))


def _two(parts: Sequence[NDArray[Any]], label: str) -> list[Any]:
    """The values of a column, sorted, if they are no more than two."""
    if len({part.dtype == object for part in parts}) > 1:
        raise DataError(f"{label} is text in one of the tables, and numbers in another: make it one or the other.")
    values = sorted(set().union(*(set(np.unique(part).tolist()) for part in parts)))
    if len(values) <= 2:
        return values
    shown = ", ".join(repr(value) if isinstance(value, str) else f"{value:g}" for value in values[:3])
    remedy = (
        "Write it as one column of zeros and ones for each value, or leave it out"
        if len(values) <= 20 or isinstance(values[0], str)
        else "Cut it in two, such as below and above some value, or leave it out"
    )
    raise DataError(
        f"{label} has {len(values)} values ({shown}{', ...' if len(values) > 3 else ''}), but columns of two values "
        f"are what can be compared. {remedy}. (`made fit` takes it as it is.)"
    )
