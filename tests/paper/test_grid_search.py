"""A row of a table: selection by validation rows, one evaluation on test rows, resuming."""

from __future__ import annotations

import pytest

from made import MADE
from made.errors import Diverged
from made.paper.grid_search import GridSearch
from made.paper.results_file import FIELDS
from paper_results import TINY

CASES = {name: TINY | {"learning_rate": rate} for name, rate in (("slow", 1e-6), ("fast", 0.1), ("slower", 1e-9))}


def test_validation_chooses(small, search) -> None:
    result = search.run_row(small, "MADE", CASES)
    tried = {each["name"]: each["valid_nll"] for each in result["tried"]}
    assert list(tried) == ["slow", "fast", "slower"]
    assert min(tried, key=lambda name: tried[name]) == "fast"
    assert result["valid_nll"] == tried["fast"]
    assert result["config"] == {"name": "fast"} | CASES["fast"] | {"hidden_sizes": [5]}


def test_a_result_is_complete_and_that_of_its_model(small, search) -> None:
    result = search.run_row(small, "MADE", CASES)
    assert all(result[field] is not None for field in FIELDS)
    assert search.results.rows() == [result]
    model = MADE.load(search.runs / "digits" / "fast")
    assert result["test_nll"] == pytest.approx(-model.score_samples(small.test).mean(), rel=1e-6)


def test_test_rows_are_evaluated_once(small, search, looks) -> None:
    result = search.run_row(small, "MADE", CASES)
    assert looks == [50]
    assert search.run_row(small, "MADE", CASES) == result
    assert looks == [50]
    longer = {name: parameters | {"max_epochs": 2} for name, parameters in CASES.items()}
    assert search.run_row(small, "MADE", longer)["epochs"] == 2
    assert looks == [50, 50]


def test_a_row_resumes_where_it_was_stopped(small, search, looks, monkeypatch) -> None:
    cases = {name: TINY | {"learning_rate": rate} for name, rate in (("one", 0.01), ("two", 0.1))}
    fit = GridSearch.fit

    def stopped(self, data, name, parameters):
        if name == "two":
            raise KeyboardInterrupt
        return fit(self, data, name, parameters)

    monkeypatch.setattr(GridSearch, "fit", stopped)
    with pytest.raises(KeyboardInterrupt):
        search.run_row(small, "MADE", cases)
    assert looks == []
    (there,) = search.results.rows()
    assert (there["test_nll"], there["config"]["name"]) == (None, "one")
    before = (search.runs / "digits" / "one" / "model.safetensors").stat().st_mtime_ns
    monkeypatch.setattr(GridSearch, "fit", fit)
    result = search.run_row(small, "MADE", cases)
    assert looks == [50]
    assert [each["name"] for each in result["tried"]] == ["one", "two"]
    assert (search.runs / "digits" / "one" / "model.safetensors").stat().st_mtime_ns == before


def test_what_diverges_is_not_chosen(small, search) -> None:
    wild = TINY | {"optimizer": "sgd", "learning_rate": 1e37}
    result = search.run_row(small, "MADE", {"wild": wild, "tame": TINY})
    assert result["config"]["name"] == "tame"
    assert "not finite" in result["tried"][0]["failed"]
    with pytest.raises(Diverged, match="every configuration of the row 'ours' diverged"):
        search.run_row(small, "ours", {"wild": wild})
