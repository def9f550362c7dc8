"""Forged numbers in config.json: a folder is refused when it is opened, or every value near the middle has a score."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from made import MADE
from made.errors import DataError, ModelError
from made.model.folder import replace_folder
from made.tables.field import Field

RANDOM = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "real": RANDOM.normal(5, 2, 200),
        "whole": RANDOM.integers(-500, 500, 200),
        "amount": np.exp(RANDOM.normal(3, 2, 200)),
        "count": np.floor(np.exp(RANDOM.normal(4, 2, 200))),
        "debt": np.where(RANDOM.random(200) < 0.4, 0, np.exp(RANDOM.normal(8, 1.5, 200))),
        "flag": RANDOM.random(200) < 0.3,
        "word": RANDOM.choice(["a", "b", "c"], 200),
    }
)
KEYS = {"numeric": ("location", "scale", "step", "curve", "center", "low", "spikes"), "binary": ("share",)}
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.builds(lambda sign, power: sign * 10.0**power, st.sampled_from([-1, 1]), st.integers(-323, 308)),
    st.sampled_from([0.0, 5e-324, 1e-310, 1.7e308, -1.7e308, 0.5, 1.0, 3.0]),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("forged") / "model"
    model = MADE(hidden_sizes=(4,), max_epochs=1, evaluation_masks=2, standardized=True, unseen="other", random_state=0)
    model.fit(FRAME).save(path)
    return path


@pytest.fixture(scope="module")
def columns(folder):
    found = json.loads((folder / "config.json").read_text())["columns"]
    families = {(each["step"] > 0, each.get("curve", 0) > 0) for each in found if each["kind"] == "numeric"}
    assert families == {(False, False), (True, False), (False, True), (True, True)}
    return found


def near_the_middle(field: Field) -> torch.Tensor:
    """Values that the column can have, and whose steps can be told apart."""
    kind = field.column
    if field.kind != "numeric":
        return torch.arange(2.0)
    places = torch.tensor([0.0, 0.5, -0.5, 1.0, -1.0, 3.0], dtype=torch.float64)
    rest = getattr(kind, "rest", kind)
    (origin, step), low = kind.grid, max(rest.low, -1e300)
    numbers = torch.cat([rest.outer(places), torch.tensor([origin, *kind.atoms, low], dtype=torch.float64)])
    visible = (numbers - origin).abs() <= 1e12 * (step or math.inf)
    return numbers[kind.valid(numbers) & visible]


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_forged_numbers_are_refused_or_have_a_likelihood(columns, data) -> None:
    column = dict(data.draw(st.sampled_from([each for each in columns if each["kind"] in KEYS])))
    for key in data.draw(st.sets(st.sampled_from(KEYS[column["kind"]]), min_size=1)):
        column[key] = [data.draw(NUMBERS)] if key == "spikes" else data.draw(NUMBERS)
    try:
        field = Field.from_json(column)
    except DataError:
        return
    kind = field.column
    values = kind.inner(near_the_middle(field)).float()
    units = kind.initial().expand(len(values), -1)
    assert kind.encode(values).isfinite().all()
    assert kind.log_prob(units, values).isfinite().all()


@pytest.mark.parametrize(
    ("column", "changes"),
    [
        ("whole", {"scale": 5e-324}),
        ("whole", {"scale": 1e200}),
        ("whole", {"step": 1e-300}),
        ("whole", {"step": 1e300}),
        ("amount", {"location": 1e308}),
        ("amount", {"location": -1e50}),
        ("amount", {"scale": 1e100}),
        ("count", {"location": 100.0}),
        ("count", {"step": 1e-17}),
        ("debt", {"location": 1e200}),
        ("debt", {"spikes": [-1e300]}),
        ("flag", {"share": 1e400}),
    ],
)
def test_a_folder_with_forged_numbers_is_refused_when_it_is_opened(folder, tmp_path, column, changes) -> None:
    files = {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "manifest.json"}
    config = json.loads(files["config.json"])
    place = list(FRAME.columns).index(column)
    config["columns"][place] |= changes
    replace_folder(tmp_path / "copy", files | {"config.json": json.dumps(config).encode()})
    with pytest.raises(ModelError, match=f"'{column}'"):
        MADE.load(tmp_path / "copy")


def test_every_row_of_the_table_has_a_score(folder) -> None:
    assert np.isfinite(MADE.load(folder).score_samples(FRAME)).all()
