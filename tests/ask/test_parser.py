"""Questions to a fitted model, from Python and from a shell; columns with points, dates, orders and missing values."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from fields import make_field
from made import MADE, Columns, Connectivities, Ensemble, Network, log_prob
from made.ask import parser
from made.ask.exact import Probability, probability
from made.cli import app
from made.errors import QuestionError
from made.queries.conditional import predict
from questions import DISCRETE, MORE, network_of

NAN = float("nan")
QUESTION = "weight > 6 and species = cat | legs = 4"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a model of cats and dogs."""
    random = np.random.default_rng(0)
    dog = random.random(300) < 0.4
    table = pd.DataFrame(
        {
            "species": np.where(dog, "dog", "cat"),
            "weight": np.where(dog, random.normal(20, 5, 300), random.normal(4, 1, 300)).round(2),
            "height": np.where(dog, random.normal(50, 9, 300), random.normal(25, 3, 300)).round(2),
            "home town": random.choice(["Bonn", "Kiel", "Ulm"], size=300),
            "legs": random.integers(3, 5, 300),
        }
    )
    folder = tmp_path_factory.mktemp("ask")
    model = MADE(hidden_sizes=(16,), max_epochs=15, evaluation_masks=4, random_state=0).fit(table)
    model.save(folder / "model")
    return folder, model


def run(*arguments, code=0, **options):
    result = CliRunner().invoke(app, ["ask", *map(str, arguments)], **options)
    assert result.exit_code == code, result.output
    return result


def test_the_estimator_answers(home) -> None:
    _, model = home
    answer = model.probability("species = dog | `home town` = Ulm")
    assert isinstance(answer, Probability)
    row = pd.DataFrame({"species": [None], "weight": [NAN], "height": [NAN], "home town": ["Ulm"], "legs": [NAN]})
    place = model.classes("species").tolist().index("dog")
    # Beside the known species, others have a small share of what is asked, and none of what is predicted.
    assert float(answer) == pytest.approx(model.predict_proba(row, target="species")[0, place], rel=0.01)
    heavy = [float(model.probability(f"weight > 10 | species = {each}")) for each in ("cat", "dog")]
    assert heavy[0] < heavy[1]
    with pytest.raises(QuestionError, match="did you mean weight"):
        model.probability("wieght > 10")
    with pytest.raises(ValueError, match="'samples'"):
        model.probability("legs = 4", samples=0)


def test_estimates_are_drawn_by_a_seed(home) -> None:
    _, model = home
    text = "weight > 10 and height > 20 | species = dog"
    first = model.probability(text, random_state=1)
    assert first.kind == "estimate"
    assert first == model.probability(text, random_state=1)
    assert first != model.probability(text, random_state=2)
    assert first.interval[0] < first.probability < first.interval[1]
    assert str(first).endswith("(estimate: 95 % interval, 4096 paths)")
    fewer = model.probability(text, samples=100, random_state=1)
    assert fewer.samples == 112  # as many for each of the four masks, and for each pair of them
    assert fewer.standard_error > first.standard_error


def test_the_command_prints_a_line_for_each_question(home) -> None:
    folder, model = home
    lines = run(folder / "model", "species = dog", QUESTION).stdout.splitlines()
    assert lines == [str(model.probability("species = dog")), str(model.probability(QUESTION))]
    assert lines[0].startswith("P(species = 'dog') = 0.")
    assert lines[0].endswith("(computed directly)")
    assert lines[1].startswith("P(weight > 6 and species = 'cat' | legs = 4) = ")
    typed = f"species = dog\n\n# a remark\n{QUESTION}\n"
    assert run(folder / "model", input=typed).stdout.splitlines() == lines


def test_the_command_counts_rows_and_parses_each_question_once(home, tmp_path, monkeypatch) -> None:
    folder, model = home
    model.sample(25_000, random_state=0).to_csv(tmp_path / "rows.csv", index=False)  # three blocks
    rows, parsed = pd.read_csv(tmp_path / "rows.csv"), []
    query = parser._Parser.query
    monkeypatch.setattr(parser._Parser, "query", lambda self: parsed.append(self.text) or query(self))
    line = run(folder / "model", QUESTION, "--data", tmp_path / "rows.csv").stdout
    given = rows[rows["legs"] == 4]
    count = ((given["weight"] > 6) & (given["species"] == "cat")).sum()
    assert line.rstrip().endswith(f"in the rows: {count / len(given):.4g} ({count:,} of {len(given):,})")
    assert parsed == [QUESTION]


def test_the_command_prints_json(home) -> None:
    folder, _ = home
    answers = json.loads(run(folder / "model", QUESTION, "--json", "--seed", 3).stdout)["answers"]
    assert len(answers) == 1
    keys = {"question", "probability", "kind", "standard_error", "how", "states", "samples", "interval"}
    assert answers[0].keys() == keys
    assert answers[0]["question"] == "weight > 6 and species = 'cat' | legs = 4"
    assert answers[0]["interval"][0] <= answers[0]["probability"] <= answers[0]["interval"][1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["species = dgo"], "did you mean 'dog'?"),
        (
            ["legs = 4", "wieght > 5"],
            "there is no column 'wieght': did you mean weight or height?\n  wieght > 5\n  ^^^^^^",
        ),
        (["species > 3"], "has no order"),
        (["legs = 4 | weight < 3 and weight > 4"], "the given condition is impossible"),
        (["legs = 4", "--samples", "1"], "--samples"),
        ([], "there is no question"),
    ],
)
def test_a_malformed_question_has_exit_code_2(home, arguments, said) -> None:
    result = run(home[0] / "model", *arguments, code=2)
    assert said in result.stderr
    assert result.stdout == ""


def test_a_model_that_is_not_there_is_refused(home) -> None:
    assert "no such folder" in run(home[0] / "nothing", "a = 1", code=4).stderr


def test_help_needs_no_torch() -> None:
    code = (
        "import sys\nfrom made.cli import main\ntry: main()\n"
        "finally: assert not {'torch', 'sklearn', 'pyarrow', 'pydantic'} & set(sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code, "ask", "--help"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert all(option in result.stdout for option in ("--samples", "--json", "--quiet", "--seed"))


def rows_of(**columns) -> np.ndarray:
    """Rows with some codes, NaN elsewhere."""
    count = max(np.size(each) for each in columns.values())
    rows = np.full((count, len(MORE)), NAN)
    for name, values in columns.items():
        rows[:, [field.name for field in MORE].index(name)] = values
    return rows


def test_point_masses_and_missing_have_their_probabilities() -> None:
    network = network_of(MORE, scale=0.3)
    for text, code in (("debt = 0", 0.0), ("debt = 7.5", 7.5), ("debt is missing", math.inf)):
        answer = probability(Ensemble(network), MORE, text)
        assert answer.kind == "exact"
        assert float(answer) == pytest.approx(log_prob(Ensemble(network), rows_of(debt=code)).exp().item(), abs=1e-9)
    assert float(probability(Ensemble(network), MORE, "debt = 3")) == 0
    total = sum(
        float(probability(Ensemble(network), MORE, text)) for text in ("debt is missing", "debt > 0", "debt = 0")
    )
    assert total == pytest.approx(1, abs=1e-9)
    answer = probability(Ensemble(network), MORE, "grade >= mid | debt is missing")
    expected = predict(Ensemble(network), rows_of(debt=math.inf), 3).probabilities(4)[0, 1:3].sum().item()
    assert float(answer) == pytest.approx(expected, abs=1e-9)
    answer = probability(Ensemble(network), MORE, "town = '<other>' | quarter = 1970-04-01")
    assert float(answer) == pytest.approx(
        predict(Ensemble(network), rows_of(quarter=1.0), 4).probabilities(3)[0, 2].item()
    )
    assert probability(Ensemble(network), MORE, "day < 1970-02-01 and grade = low").kind == "exact"


def test_sample_paths_include_point_masses_and_missing() -> None:
    """Against the sum over the states, of which there are few enough."""
    network = network_of(MORE, scale=0.3)
    grid = [(debt, children) for debt in (0.0, 7.5, math.inf) for children in (0, 1, 2)]
    debts, children = map(np.array, zip(*grid, strict=True))
    truth = log_prob(Ensemble(network, 3), rows_of(debt=debts, children=children)).exp().sum().item()
    given = log_prob(Ensemble(network, 3), rows_of(debt=np.array([0.0, 7.5, math.inf]))).exp().numpy()
    later = log_prob(Ensemble(network, 3), rows_of(debt=debts, children=children), given=["debt"]).exp().numpy()
    conditional = (later.reshape(3, 3).sum(axis=1) * given).sum() / given.sum()
    cases = {
        "children < 3 and (debt in {0, 7.5} or debt is missing)": truth,
        "children < 3 | debt in {0, 7.5} or debt is missing": conditional,
    }
    for text, expected in cases.items():
        for seed in range(3):
            generator = torch.Generator().manual_seed(seed)
            answer = probability(Ensemble(network, 3), MORE, text, samples=1500, most_states=0, generator=generator)
            assert answer.kind == "estimate"
            assert abs(answer.probability - expected) < 4 * answer.standard_error


def test_many_columns_that_are_given_do_not_underflow() -> None:
    fields = [make_field(f"x{d}", "binary", (0, 1), dtype="int") for d in range(400)]
    columns = Columns.binary(400, [field.name for field in fields])
    network = Network(columns, Connectivities(400, (8,), masks=None))
    with torch.no_grad():
        network.c.fill_(-10.0)
    condition = " and ".join(f"x{d} = 1" for d in range(399))
    answer = probability(Ensemble(network), fields, f"x399 = 1 | {condition}")
    assert answer.kind == "exact"
    row = torch.ones(1, 400)
    assert answer.probability == pytest.approx(
        predict(Ensemble(network), row, 399).probabilities(2)[0, 1].item(), rel=1e-3
    )


def test_segments_give_the_same_probability_as_the_likelihood() -> None:
    network = network_of(DISCRETE)
    for segments in (2, 4):
        rows = torch.tensor([[1.0, NAN, code, NAN] for code in (0, 3)], dtype=torch.float64)
        truth = log_prob(Ensemble(network, segments=segments), rows).exp().sum().item()
        text = "a = yes and c in {x, w}"
        exact = probability(Ensemble(network, segments=segments), DISCRETE, text)
        assert exact.probability == pytest.approx(truth, abs=1e-12)
        generator = torch.Generator().manual_seed(0)
        estimate = probability(Ensemble(network, segments=segments), DISCRETE, text, most_states=0, generator=generator)
        assert abs(estimate.probability - truth) < 4 * estimate.standard_error
