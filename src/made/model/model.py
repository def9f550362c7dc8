"""`Model`: a fitted distribution over the rows of a table, with every query as a method."""

from __future__ import annotations

import json
import numbers
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from textwrap import shorten
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from made.ask.exact import SAMPLES, Probability
from made.ask.expressions import Query
from made.ask.frequency import satisfied
from made.columns.base import LEVELS
from made.errors import QuestionError
from made.model.card import card
from made.model.checkpoint import MISSING_VALUES, checkpoint_content, history_lines, read_folder, tensors_file
from made.model.conditionals import Conditionals, Edges, conditional, edges_of
from made.model.config import Config
from made.model.dependence import SAMPLES as PAIR_SAMPLES
from made.model.dependence import Association, MutualInformation, association
from made.model.distribution import RowDistribution
from made.model.folder import Content, packed, replace_folder, unpacked
from made.model.rows import RowCodec
from made.network.masked import Network
from made.parameters import check_integer
from made.queries.conditional import Forecast
from made.queries.ensemble import Ensemble
from made.queries.missingness import Missingness
from made.tables.table import Table
from made.training.state import Epoch, State
from made.training.weights import checked_weights

REFERENCE = 500  # rows drawn from the model, to know what surprise is usual
RandomState: TypeAlias = int | np.random.RandomState | torch.Generator | None


@dataclass(frozen=True, eq=False)
class Model(RowCodec):
    """A distribution over the rows of a table: a schema and an ensemble.

    Queries take rows as anything that :class:`made.tables.table.Table` reads: an array, a data frame, a sparse matrix.
    A missing value (NaN, None, null) is not observed. ``random_state`` is a seed, a state of numpy or a generator of
    torch to continue; by default the seed of the model.

    Attributes:
        config: its parameters, columns and scores, the content of config.json.
        ensemble: the network, and the number of masks and segments that answer a query.
        history: the epochs of training.
        finished: whether training came to its end.
        state: the state of training, if more epochs can follow.
        template: an empty table of the kind that rows are returned as. Default: pyarrow, or numpy without names.
        missingness: which values are missing, given the values; None if training did not end, or in an older folder.
    """

    config: Config
    ensemble: Ensemble
    history: list[Epoch]
    finished: bool = True
    state: State | None = None
    template: Table | None = None
    missingness: Missingness | None = None

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.view.evidence.items())
        return f"Model({shorten(', '.join(self.schema.names), 200, placeholder=' ...')}{given and ' | ' + given})"

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, to_train: bool = False) -> Model:
        """Read a model from its folder; one whose training is not finished has the best weights so far.

        The state of a finished model is read only if it is ``to_train``.
        """
        stored = read_folder(folder, to_train=to_train)
        ensemble = stored.config.ensemble(stored.network)
        state = stored.state if to_train else None
        return cls(stored.config, ensemble, stored.history, stored.finished, state, None, stored.missingness)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model to a folder. An existing model is replaced; other files are kept.

        The write is atomic: the folder holds either the old model or the new one. A folder with files but without a
        model, or with files of a model that have changed since, raises a FileExistsError. Links are followed.
        """
        files = self.files()
        if self.state is not None:
            name, content = checkpoint_content(self.config, self.state)
            files[name] = content
        replace_folder(Path(folder), files, finished=self.finished)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is read from the bytes of its folder, by the reader that checks every folder."""
        return type(self).unpacked, (packed(self.save), self.ensemble.masks, self.ensemble.segments)

    @classmethod
    def unpacked(cls, files: Mapping[str, bytes], masks: int | Sequence[int] | None, segments: int) -> Model:
        """The model whose folder has these files, answering with a number of masks and segments."""
        return unpacked(files, partial(cls.load, to_train=True)).with_ensemble(masks, segments)

    def files(self) -> dict[str, Content]:
        """The files of its folder, by name."""
        missing = self.missingness
        return {
            "config.json": (json.dumps(self.config.to_json(), indent=2) + "\n").encode(),
            "model.safetensors": tensors_file(self.network.state_dict()),
            "history.jsonl": history_lines(self.history),
            "README.md": card(self.config.to_json(), self.config.schema, self.history, self.view.evidence).encode(),
        } | ({} if missing is None else {MISSING_VALUES: tensors_file(missing.tensors())})

    @property
    def network(self) -> Network:
        """The network, with its best weights."""
        return self.ensemble.network

    @property
    def masks(self) -> list[int]:
        """The numbers of the masks that answer a query."""
        return self.ensemble.numbers

    def condition(self, given: Mapping[Any, Any]) -> Model:
        """See :meth:`made.MADE.condition`."""
        return replace(self, config=self.view.given(self.known(given)[0]), state=None, template=None)

    def marginal(self, columns: Sequence[Any]) -> Model:
        """See :meth:`made.MADE.marginal`."""
        named = [columns] if isinstance(columns, (str, numbers.Integral)) else columns
        config = self.view.limited([self.position(column) for column in named])
        return replace(self, config=config, state=None, template=None)

    def with_ensemble(self, masks: int | Sequence[int] | None, segments: int) -> Model:
        """The same model, answering with another number of masks and segments."""
        return replace(self, ensemble=replace(self.ensemble, masks=masks, segments=segments))

    @property
    def in_double(self) -> Model:
        """The same model, answering in double precision."""
        return replace(self, ensemble=self.ensemble.in_double)

    def generator(self, random_state: RandomState = None) -> torch.Generator:
        """Random numbers on the device of the network."""
        if isinstance(random_state, torch.Generator):
            return random_state
        if not isinstance(random_state, np.random.RandomState):
            random_state = np.random.RandomState(self.config.seed if random_state is None else random_state)
        return torch.Generator(self.network.c.device).manual_seed(int(random_state.randint(2**31 - 1)))

    def score_samples(self, X: Any, *, given: Any = None) -> NDArray[np.floating[Any]]:
        """See :meth:`made.MADE.score_samples`."""
        codes = self.codes(X)
        named = [given] if isinstance(given, (str, numbers.Integral)) else given
        return self.view.score(codes, [] if given is None else [self.position(column) for column in named])

    def score(self, X: Any, sample_weight: Any = None) -> float:
        """The mean of :meth:`score_samples`, weighted if the rows have weights."""
        log_prob = self.score_samples(X).astype(np.float64)
        return float(np.average(log_prob, weights=checked_weights(sample_weight, len(log_prob))))

    def sample(
        self,
        n_samples: int = 1,
        *,
        given: Mapping[Any, Any] | Any = None,
        temperature: float = 1.0,
        missing: bool = False,
        random_state: RandomState = None,
    ) -> Any:
        """See :meth:`made.MADE.sample`."""
        check_integer("n_samples", n_samples, 1)
        known = self.known(given, n_samples) if given is None or isinstance(given, Mapping) else self.codes(given)
        known, generator = known.repeat(n_samples, axis=0), self.generator(random_state)
        if missing:
            return self.decode(self.view.draw_incomplete(known, self.missingness, generator, temperature))
        return self.decode(self.view.draw(known, generator, temperature))

    def impute(
        self,
        X: Any,
        *,
        n_draws: int = 1,
        strategy: Literal["sample", "mode", "mean"] = "sample",
        return_uncertainty: bool = False,
        random_state: RandomState = None,
    ) -> Any:
        """See :meth:`made.MADE.impute`."""
        if strategy not in ("sample", "mode", "mean"):
            raise ValueError(f"'strategy' should be one of sample, mode, mean, not {strategy!r}.")
        check_integer("n_draws", n_draws, 1)
        if strategy != "sample" and n_draws > 1:
            raise ValueError(f"'n_draws' is {n_draws}, but strategy={strategy!r} has only one result.")
        table = self.table(X)
        codes = self.codes(table)
        generator = self.generator(random_state) if strategy == "sample" else None
        shown = codes.shape[1] - table.extra if return_uncertainty else 0
        several, how = self.view.fill(codes, strategy, draws=n_draws, generator=generator, uncertain=shown)
        filled: Any = [self.schema.fill(table, each) for each in several]
        if n_draws == 1:
            filled = filled[0]
        elif isinstance(filled[0], (np.ndarray, torch.Tensor)):
            filled = np.stack(filled) if isinstance(filled[0], np.ndarray) else torch.stack(filled)
        return (filled, how) if return_uncertainty else filled

    def predict_proba(self, X: Any, target: Any = None) -> NDArray[np.floating[Any]]:
        """See :meth:`made.MADE.predict_proba`."""
        d = self.target(target)
        codes, dtype = self.codes(X, d), self.config.parameters["dtype"]
        self.classes(d)  # refuses a column of numbers
        return self.view.forecast(codes, d).probabilities.astype(dtype)

    def forecast(self, X: Any, target: Any = None, quantiles: Sequence[float] = LEVELS) -> Forecast:
        """The distribution of a column in each row, given what is observed of the others."""
        d = self.target(target)
        return self.view.forecast(self.codes(X, d), d, quantiles)

    def predict(self, X: Any, target: Any = None) -> NDArray[Any]:
        """See :meth:`made.MADE.predict`."""
        d = self.target(target)
        field, found = self.schema.fields[d], self.forecast(X, d, ())
        if found.probabilities.shape[1]:
            return np.asarray(self.classes(d)[found.probabilities.argmax(axis=1)])
        return found.mean if field.temporal is None else field.decode(found.mean, "text")[0]

    def predict_quantiles(
        self, X: Any, target: Any = None, *, quantiles: Sequence[float] = LEVELS
    ) -> NDArray[np.float64]:
        """See :meth:`made.MADE.predict_quantiles`."""
        _check_levels(quantiles)
        d = self.target(target)
        field = self.schema.fields[d]
        if not field.column.quantitative:
            raise QuestionError(f"column {field.name!r} has no order, and so no quantiles: ask for predict_proba.")
        codes = self.codes(X, d)
        if not field.listed:
            return self.view.quantiles(codes, d, quantiles)
        below = self.view.forecast(codes, d).probabilities.cumsum(axis=1)[:, :-1]
        places = [(below < level - 1e-9).sum(axis=1) for level in quantiles]
        return np.asarray(np.array(field.values, dtype=np.float64)[np.stack(places, axis=1)])

    def conditionals(
        self, given: Mapping[Any, Any] | None = None, *, quantiles: Sequence[float] = LEVELS
    ) -> Conditionals:
        """See :meth:`made.MADE.conditionals`."""
        _check_levels(quantiles)
        codes, fields = self.known(given), self.schema.fields
        found = self.view.marginals(codes)
        alone = self._edges if self.ensemble.any_order else {d: edges_of(fields[d], each) for d, each in found.items()}
        columns = {fields[d].name: conditional(fields[d], each, alone[d], quantiles) for d, each in found.items()}
        log_p = 0.0 if len(found) == len(fields) else float(self.view.score(codes)[0])
        return Conditionals(log_p, columns)

    @cached_property
    def _edges(self) -> dict[int, Edges]:
        """The bins of each column; they do not depend on what is given, so that distributions can be compared."""
        found = self.view.marginals(self.known(None))
        return {d: edges_of(self.schema.fields[d], each) for d, each in found.items()}

    @property
    def has_classes(self) -> bool:
        """Whether the target, or without one any column, has a list of values."""
        named = zip(self.schema.names, self.schema.columns, strict=True)
        return any(kind.cardinality for name, kind in named if self.default_target in (None, name))

    def classes(self, target: Any = None) -> NDArray[Any]:
        """See :meth:`made.MADE.classes`."""
        field = self.schema.fields[self.target(target)]
        if not field.listed:
            raise QuestionError(
                f"column {field.name!r} is {field.kind} and has no list of values: name a 'target' that has one, or "
                "fill the column by impute(X, strategy='mean')."
            )
        return np.array(field.labels())

    def denoise(
        self,
        X: Any,
        error: float = 0.05,
        *,
        column_error: Mapping[Any, float] | None = None,
        strategy: Literal["mode", "mean"] = "mode",
        return_uncertainty: bool = False,
        random_state: RandomState = None,
    ) -> Any:
        """See :meth:`made.MADE.denoise`."""
        if strategy not in ("mode", "mean"):
            raise ValueError(f"'strategy' should be mode or mean, not {strategy!r}.")
        table = self.table(X)
        errors = np.full(len(self.schema.fields), error, dtype=np.float64)
        for column, chance in (column_error or {}).items():
            errors[self.position(column)] = chance
        if not ((errors >= 0) & (errors < 1)).all():
            wrong = errors[~((errors >= 0) & (errors < 1))][0]
            raise QuestionError(f"'error' should be a probability, at least 0 and below 1, not {wrong:g}.")
        generator, expected = self.generator(random_state), strategy == "mean"
        clean = self.view.denoise(self.codes(table), errors, expected=expected, generator=generator)
        columns = list(table.columns)
        places = self.schema.positions(table)
        for d in np.flatnonzero(clean.changed.any(axis=0)).tolist():
            column = columns[places[d]] = columns[places[d]].copy()
            column[clean.changed[:, d]] = None if column.dtype == object else np.nan
        rows = self.schema.fill(replace(table, columns=columns), clean.codes)
        return (rows, clean) if return_uncertainty else rows

    def probability(
        self, condition: str | Query, *, samples: int = SAMPLES, random_state: RandomState = None
    ) -> Probability:
        """See :meth:`made.MADE.probability`."""
        return self.view.probability(condition, samples=samples, generator=self.generator(random_state))

    def mutual_information(
        self, first: Any, second: Any, *, samples: int = PAIR_SAMPLES, random_state: RandomState = None
    ) -> MutualInformation:
        """See :meth:`made.MADE.mutual_information`."""
        pair = [self.position(first), self.position(second)]
        if pair[0] == pair[1]:
            raise QuestionError(f"mutual information is of two columns, not of {self.schema.names[pair[0]]!r} alone.")
        ((_, _, found),) = self._association(pair, samples, random_state).strongest(1)
        return found

    def association(self, *, samples: int = PAIR_SAMPLES, random_state: RandomState = None) -> Association:
        """See :meth:`made.MADE.association`."""
        return self._association(range(len(self.schema.fields)), samples, random_state)

    def _association(self, columns: Sequence[int], samples: int, random_state: RandomState) -> Association:
        check_integer("samples", samples, 2)
        return association(self.view, columns, samples, self.generator(random_state))

    def distribution(self, given: Mapping[Any, Any] | None = None) -> RowDistribution:
        """See :meth:`made.MADE.distribution`."""
        return RowDistribution(self.condition(given) if given else self)

    def satisfied(self, condition: str | Query, X: Any) -> NDArray[np.float64]:
        """Which rows satisfy a condition: 1 or 0; NaN where what is given does not hold, or a value is missing."""
        return satisfied(condition, self.schema.fields, self.codes(self.table(X)))

    def surprise(self, X: Any) -> Any:
        """See :meth:`made.MADE.surprise`."""
        table = self.table(X)
        return table.put_numbers(self._surprise(table), self.schema.names)

    def surprise_matrix(self, X: Any) -> NDArray[np.float64]:
        """:meth:`surprise` as an array. Shape: (rows, columns)."""
        return self._surprise(self.table(X)).astype(np.float64)

    def usual_surprise(self, X: Any = None, *, random_state: RandomState = 0) -> NDArray[np.float64]:
        """The median surprise of each column over some rows; 0 for a column that none of them observes.

        Default: 500 rows drawn from the model.
        """
        surprise = self.surprise_matrix(self.sample(REFERENCE, random_state=random_state) if X is None else X)
        return np.asarray(np.nanmedian(np.where(np.isnan(surprise).all(axis=0), 0.0, surprise), axis=0))

    def _surprise(self, table: Table) -> NDArray[np.floating[Any]]:
        return self.view.surprise(self.codes(table)).astype(self.config.parameters["dtype"])


def _check_levels(quantiles: Sequence[float]) -> None:
    if not all(0 <= each <= 1 for each in quantiles):
        raise QuestionError(f"'quantiles' should be probabilities, from 0 to 1, not {quantiles!r}.")
