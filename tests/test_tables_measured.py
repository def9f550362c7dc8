"""The page of what was measured on tables is that of its results, and says plainly what was missed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.tables_before import Codes, filling
from benchmarks.tables_page import IMPUTERS, LABELLERS, PAGE, RESULTS, TABLES, page


def test_the_page_of_the_repository_is_that_of_its_results() -> None:
    old = "docs/tables-measured.md is old: run python -m benchmarks.tables_page"
    assert PAGE.read_text() == page(json.loads(RESULTS.read_text())), old


@pytest.fixture
def content() -> dict[str, Any]:
    """The results, of the first table only, in which ours is at the limits of the aims."""
    content = json.loads(RESULTS.read_text())
    row = next(row for row in content["rows"] if row["table"] == "penguins")
    for found in row["impute"].values():
        for name in IMPUTERS:
            found[name] |= {"accuracy": 0.75, "error": 0.55 if name == "made" else 0.5}
    for name in LABELLERS:
        row["label"][name]["auc"] = 0.86 if name == "made" else 0.875
    return content | {"rows": [row]}


def aims(content: dict[str, Any]) -> list[str]:
    line = next(line for line in page(content).splitlines() if line.startswith("| penguins | m"))
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


def test_aims_are_met_at_their_limits(content) -> None:
    assert aims(content) == [
        "met (+0.000, +0.000, +0.000)",
        "met (1.10, 1.10, 1.10)",
        "met (-0.015)",
    ]


def test_aims_that_are_missed_are_said_to_be(content) -> None:
    (row,) = content["rows"]
    row["impute"]["30%"]["KNNImputer"]["accuracy"] = 0.76
    for found in row["impute"].values():
        found["made"]["error"] = 0.6
    row["label"]["gradient boosting, stopped early"]["auc"] = 0.9
    assert aims(content) == [
        "missed 1 of 3 (+0.000, -0.010, +0.000)",
        "missed (1.20, 1.20, 1.20)",
        "missed (-0.040)",
    ]


def test_figures_are_means_over_splits(content) -> None:
    (row,) = content["rows"]
    other = json.loads(json.dumps(row))
    row["likelihood"]["made"], other["likelihood"]["made"] = -10.0, -13.0
    line = page(content | {"rows": [row, other]}).split("## Likelihood")[1]
    assert "| penguins | **-11.50** |" in line


def test_tables_that_are_missing_are_named(content) -> None:
    assert "Not measured yet: house_votes, attrition, credit_data, wa_churn (" in page(content)
    rows = [content["rows"][0] | {"table": name} for name in TABLES]
    assert "Not measured" not in page(content | {"rows": rows})


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {"kind": ["a", "b", "c", "b", None], "size": [1.0, 2.0, None, 4.0, 5.0], "two": [0, 1, 1, 0, 1]}
    )


def test_codes_are_a_table_and_back() -> None:
    rows = table().dropna()
    codes = Codes(table(), ["kind", "two"])
    there = codes.encode(rows)
    pd.testing.assert_frame_equal(codes.decode(there)[list(rows)], rows.reset_index(drop=True), check_dtype=False)
    without = codes.without_first(there)
    assert without.shape[1] == there.shape[1] - 2
    np.testing.assert_allclose(codes.with_first(without), there, atol=1e-12)
    assert np.isnan(codes.encode(table())[4, 1:4]).all()


def test_only_what_was_hidden_is_scored() -> None:
    truth = pd.DataFrame({"kind": ["a", "b", "a", "b"], "size": [1.0, 2.0, 3.0, 4.0]})
    filled = pd.DataFrame({"kind": ["a", "a", "b", "a"], "size": [1.0, 9.0, 3.0, 6.0]})
    hidden = np.array([[True, False], [True, False], [False, False], [False, True]])
    found = filling(truth, truth, filled, hidden, ["kind"])
    assert found["accuracy"] == 0.5
    assert found["error"] == pytest.approx(2 / truth["size"].std())
