"""Columns of text that is no list of categories are refused with what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from made.errors import DataError
from made.tables.schema import Schema
from made.tables.table import Table
from made.tables.text_forms import remedy

ROWS = range(60)
PRICES = np.random.default_rng(0).integers(100, 9_999_999, 60) / 100


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([f"{row + 1}.5%" for row in ROWS], "60 texts that look like numbers, such as '1.5%': convert it"),
        ([f"${price:,.2f}" for price in PRICES], "60 texts that look like numbers, such as .*: convert it"),
        ([f"{price:,.2f}".translate(str.maketrans(",.", " ,")) for price in PRICES], "look like numbers"),
        ([*map(str, PRICES[1:]), "unknown"], "60 texts that look like numbers"),
        (
            [f"{1 + row % 12}/{1 + row % 28}/2016 0:00" for row in ROWS],
            "look like dates.*to the form 2024-03-14",
        ),
        ([f"{1 + row % 28}-Aug-{row:02}" for row in ROWS], "look like dates, such as '1-Aug-00'"),
        ([f"2024-03-{10 + row % 20}T{row % 24:02}:00+0{1 + row % 2}:00" for row in ROWS], "look like dates"),
        ([f"{row % 24:02}:{row:02}:10" for row in ROWS], "look like times, such as '00:00:10'.*such as hours"),
    ],
)
def test_text_in_a_form_that_is_not_read(texts, message) -> None:
    with pytest.raises(DataError, match=message + ".*or leave it out, columns=") as refused:
        Schema.infer(Table.of(pd.DataFrame({"a": texts})), unseen="other")
    assert "identifier" not in str(refused.value)


@pytest.mark.parametrize(
    "form", ["name {}", "877-76{}", "192.168.0.{}", "Mazda RX {}", "AM-{}", "1.2.{}a", "{}%%", "$", "v{}.0"]
)
def test_text_that_is_none_of_these(form) -> None:
    assert remedy([form.format(row) for row in ROWS]) is None
