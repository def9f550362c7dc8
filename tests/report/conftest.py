"""One model and its report for all tests of reports."""

from __future__ import annotations

import pyarrow as pa
import pytest

from browser import animals, fitted
from made.model.model import Model
from made.report.measure import measure
from made.report.report import Report


@pytest.fixture(scope="session")
def table() -> pa.Table:
    return animals()


@pytest.fixture(scope="session")
def model(table) -> Model:
    return fitted(table)


@pytest.fixture(scope="session")
def report(model, table) -> Report:
    return measure(model, table, name="animals", data="table.csv", top=3)
