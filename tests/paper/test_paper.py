"""The paper's tables and figures: what is trained, chosen and kept, and the page that says so."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from made import MADE
from made.baselines import LogProb
from made.cli import app
from made.columns.onehot import Exclusive
from made.errors import DataError, Diverged, Interrupted, ModelError
from made.io import datasets
from made.io.datasets import Dataset, digits
from made.paper import figure_masks, figure_samples, own_models, published, table_baselines, table_mnist, table_uci
from made.paper.grid_search import GridSearch
from made.paper.results_file import FIELDS, ResultsFile
from made.paper.results_page import NAMES, describe_orderings, results_page
from made.paper.seed_ensemble import EstimatorMember, SeedEnsemble, TiedMember

ROOT = Path(__file__).parents[2]
TINY = {"hidden_sizes": (5,), "masks": 1, "optimizer": "adagrad", "max_epochs": 1, "batch_size": 50}


def run(*arguments, code: int = 0):
    result = CliRunner().invoke(app, ["paper", *(str(each) for each in arguments)])
    if isinstance(result.exception, Exception) and code != 1:
        raise result.exception
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def small() -> Dataset:
    data = digits()
    return Dataset("digits", data.train[:100], data.valid[:50], data.test[:50], data.image)


@pytest.fixture
def search(tmp_path) -> GridSearch:
    return GridSearch(ResultsFile(tmp_path / "results" / "some.json"), tmp_path / "runs", command="made paper")


@pytest.fixture
def looks(monkeypatch) -> list[int]:
    """How many rows each question was about that was put to a model."""
    asked: list[int] = []
    score_samples = MADE.score_samples

    def counted(self, X, **options):
        asked.append(len(X))
        return score_samples(self, X, **options)

    monkeypatch.setattr(MADE, "score_samples", counted)
    return asked


def test_a_row_of_a_set_is_in_the_record_once(tmp_path) -> None:
    record = ResultsFile(tmp_path / "new" / "some.json")
    assert record.rows() == []
    record.put({"dataset": "b", "row": "MADE", "test_nll": 2.0})
    record.put({"dataset": "a", "row": "MADE", "test_nll": 1.0})
    written = record.put({"dataset": "b", "row": "MADE", "test_nll": 3.0, "more": [1]})
    assert [(row["dataset"], row["test_nll"]) for row in record.rows()] == [("a", 1.0), ("b", 3.0)]
    assert record.get("b", "MADE") == written
    assert record.get("b", "ours") is None
    for row in json.loads(record.path.read_text()):
        assert set(FIELDS) <= set(row)
        assert row["seconds"] is None
        assert re.fullmatch(r"[0-9a-f]{10}\+?|unknown", row["commit"])


def test_two_processes_that_write_lose_nothing(tmp_path) -> None:
    path = tmp_path / "some.json"
    code = "import sys; from pathlib import Path; from made.paper.results_file import ResultsFile\n"
    code += "for i in range(15): ResultsFile(Path(sys.argv[1])).put({'dataset': sys.argv[2], 'row': str(i)})"
    both = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in "ab"]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    found = [(row["dataset"], row["row"]) for row in ResultsFile(path).rows()]
    assert found == [(name, str(i)) for name in "ab" for i in range(15)]


@pytest.mark.parametrize(("text", "said"), [("[{", "cannot be read"), ('{"a": 1}', "list"), ("[1]", "list")])
def test_a_damaged_record_is_refused_and_left_as_it_is(tmp_path, text, said) -> None:
    (tmp_path / "some.json").write_text(text)
    record = ResultsFile(tmp_path / "some.json")
    with pytest.raises(DataError, match=rf"some\.json .*{said}"):
        record.rows()
    with pytest.raises(DataError, match=said):
        record.put({"dataset": "a", "row": "b"})
    assert (tmp_path / "some.json").read_text() == text


def test_validation_chooses_and_test_rows_are_asked_about_once(small, search, looks) -> None:
    cases = {name: TINY | {"learning_rate": rate} for name, rate in (("slow", 1e-6), ("fast", 0.1), ("slower", 1e-9))}
    result = search.run_row(small, "MADE", cases)
    assert looks == [50]
    tried = {each["name"]: each["valid_nll"] for each in result["tried"]}
    assert list(tried) == ["slow", "fast", "slower"]
    assert min(tried, key=lambda name: tried[name]) == "fast" == result["config"]["name"]
    assert result["valid_nll"] == tried["fast"]
    assert result["config"] == {"name": "fast"} | cases["fast"] | {"hidden_sizes": [5]}
    assert set(result) >= set(FIELDS)
    assert all(result[field] is not None for field in FIELDS)
    assert search.results.rows() == [result]
    model = MADE.load(search.runs / "digits" / "fast")
    assert result["test_nll"] == pytest.approx(-model.score_samples(small.test).mean(), rel=1e-6)

    looks.clear()
    assert search.run_row(small, "MADE", cases) == result
    assert looks == []
    longer = {name: parameters | {"max_epochs": 2} for name, parameters in cases.items()}
    assert search.run_row(small, "MADE", longer)["epochs"] == 2
    assert looks == [50]


def test_a_row_goes_on_where_it_was_stopped(small, search, looks, monkeypatch) -> None:
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


def test_the_grids_are_those_of_the_paper() -> None:
    every = {**table_uci.cases("MADE", "full"), **table_uci.cases("MADE mask sampling", "full")}
    assert len(every) == 2 * 2 * 3 * 2 * 5 == 120
    varied = ("hidden_sizes", "activation", "epsilon", "conditioning", "masks")
    assert len({tuple(case[name] for name in varied) for case in every.values()}) == 120
    assert {case["masks"] for case in table_uci.cases("MADE", "full").values()} == {1}
    for row in table_uci.ROWS:
        assert set(table_uci.cases(row, "evening")) < set(table_uci.cases(row, "full"))
        for case in table_uci.cases(row, "full").values():
            MADE(**case).check_parameters()
    for row, (layers, masks) in table_mnist.ROWS.items():
        full = table_mnist.cases(row, "full")
        assert [case["learning_rate"] for case in full.values()] == [0.1, 0.05, 0.01, 0.005]
        assert all((case["hidden_sizes"], case["masks"]) == ((8000,) * layers, masks) for case in full.values())
        (name,) = table_mnist.cases(row, "evening", width=64, epochs=3)
        assert name == f"{layers}x64-{masks}-mask{'s' if masks > 1 else ''}-rate-0.05-3-epochs"
        assert [case["learning_rate"] for case in table_mnist.cases(row, "full", rates=[0.2]).values()] == [0.2]
        assert row in published.MNIST


@pytest.fixture
def toy() -> Dataset:
    """Three columns that exclude each other, one on its own, and two that exclude each other."""
    random = np.random.default_rng(0)
    rows = np.zeros((400, 6), dtype=np.uint8)
    rows[np.arange(400), random.integers(0, 3, 400)] = 1
    rows[:, 3] = random.random(400) < 0.6
    rows[np.arange(400), 4 + random.integers(0, 2, 400)] = 1
    return Dataset("toy", rows[:200], rows[200:300], rows[300:])


WORLDS = np.array(list(itertools.product([0, 1], repeat=6)))


def test_a_committee_is_a_distribution_of_all_worlds(toy, tmp_path) -> None:
    groups = Exclusive.find(toy.train)
    assert groups.sizes == (3, 1, 2)
    members = []
    for seed in range(2):
        model = MADE(hidden_sizes=(8,), masks=2, max_epochs=3, columns=groups.kinds, random_state=seed)
        members.append(EstimatorMember(model, groups, toy, tmp_path / f"seed-{seed}"))
    both = np.exp(SeedEnsemble(members).log_prob(WORLDS))
    assert both.sum() == pytest.approx(1, abs=1e-5)
    each = [np.exp(member.log_prob(WORLDS)) for member in members]
    assert both == pytest.approx((each[0] + each[1]) / 2, rel=1e-5)
    apart = groups.encode(WORLDS)[1]
    assert both[~apart].sum() == pytest.approx(1 / (len(toy.train) + 2), rel=1e-6)


def test_tied_networks_are_a_distribution_and_learn_once(toy, tmp_path, monkeypatch) -> None:
    parameters = {"hidden_size": 8, "activation": "relu", "ordering": "random", "input_dropout": 0.1, "max_epochs": 3}
    members = [TiedMember(parameters, seed, toy, tmp_path / f"seed-{seed}") for seed in range(2)]
    assert not np.array_equal(members[0].model.orderings_, members[1].model.orderings_)
    both = np.exp(SeedEnsemble(members).log_prob(WORLDS))
    assert both.sum() == pytest.approx(1, abs=1e-5)
    assert members[1].facts["valid_nll"] == pytest.approx(-members[1].log_prob(toy.valid).mean())
    monkeypatch.setattr("made.baselines.tied.TiedMADE.optimize", lambda *_: pytest.fail("it is there already"))
    again = TiedMember(parameters, 1, toy, tmp_path / "seed-1")
    assert np.array_equal(again.log_prob(WORLDS), members[1].log_prob(WORLDS))
    assert again.facts == members[1].facts
    for other in ({"hidden_size": 9}, {"max_epochs": 4}, {"average": 0.5}):
        with pytest.raises(ModelError, match="other rows or parameters"):
            TiedMember(parameters | other, 1, toy, tmp_path / "seed-1")
    with pytest.raises(ModelError, match="other rows or parameters"):
        TiedMember(parameters, 1, dataclasses.replace(toy, train=toy.train[1:]), tmp_path / "seed-1")
    with pytest.raises(DataError, match="images"):
        TiedMember(parameters | {"ordering": "walk"}, 2, toy, tmp_path / "seed-2")


def test_our_rows_are_made_once(toy, search, looks, monkeypatch) -> None:
    small = {"hidden_sizes": (6,), "max_epochs": 2}
    monkeypatch.setitem(own_models.CHOSEN["ours"], "toy", own_models.Choice("fixed", 2, {"masks": 2, **small}))
    monkeypatch.setitem(own_models.CHOSEN["any-order"], "toy", own_models.Choice("any-order", 1, small))
    result = own_models.make(search, toy)
    assert [each["row"] for each in result] == list(own_models.ROWS)
    assert [each["masks"] for each in result] == [2, "unlimited"]
    assert [each["config"]["members"] for each in result] == [2, 1]
    assert all(each[field] is not None for each in result for field in FIELDS)
    assert search.results.rows() == result
    looks.clear()
    assert own_models.make(search, toy) == result
    assert looks == []
    tied = own_models.Choice("tied", 2, {"hidden_size": 4, "max_epochs": 2})
    monkeypatch.setitem(own_models.CHOSEN["ours"], "toy", tied)
    (other,) = own_models.make(search, toy, ("ours",))
    assert other["config"]["name"] == "2 tied networks of 4 units for each degree, 1 masks"
    assert other["epochs"] == 4
    assert own_models.make(search, toy, ("ours",)) == [other]


def test_what_was_not_chosen_is_searched(toy, search, monkeypatch) -> None:
    """Of both recipes, the one under which validation rows are likelier."""
    pytest.importorskip("optuna")
    monkeypatch.setattr(own_models, "MEMBERS", 1)
    space = {"hidden_sizes": ["6"], "max_epochs": [1, 2], "masks": [1], "whole_rows": [0.5]}  # each for one recipe
    monkeypatch.setattr(own_models, "SPACE", space)
    assert own_models.make(search, toy, ("ours",)) == []  # not in an evening
    search = dataclasses.replace(search, budget="full")
    (result,) = own_models.make(search, toy, ("ours",), trials=2)
    best = {}
    for recipe in own_models.RECIPES:
        trials = json.loads((search.runs / "toy" / f"{recipe}-search" / "trials.json").read_text())
        best[recipe] = min(trial["valid_nll"] for trial in trials if trial["valid_nll"] is not None)
    assert result["config"]["recipe"] == min(best, key=best.__getitem__)
    assert result["config"]["parameters"]["hidden_sizes"] == [6]


def test_figure_2_has_a_point_for_each_number_of_masks_and_size_of_batches(small, search, tmp_path, looks) -> None:
    points = figure_masks.make(search, small, masks=(1, 2), batches=(20, 50), units=5, epochs=1)
    assert [(each["config"]["batch_size"], each["masks"]) for each in points] == [(20, 1), (20, 2), (50, 1), (50, 2)]
    assert figure_masks.make(search, small, masks=(1, 2), batches=(20, 50), units=5, epochs=1) == points
    assert looks == [50] * 4
    figure_masks.plot(points, tmp_path / "masks.png")
    assert (tmp_path / "masks.png").read_bytes().startswith(b"\x89PNG")


def test_the_nearest_row_does_not_depend_on_batches(monkeypatch) -> None:
    random = np.random.default_rng(0)
    samples, train = random.integers(0, 2, (20, 30)), random.integers(0, 2, (50, 30))
    at_once = figure_samples.nearest(samples, train)
    monkeypatch.setattr(figure_samples, "BATCH", 7)
    assert (figure_samples.nearest(samples, train) == at_once).all()


def result_of(dataset: str, row: str, nll: float, **more) -> dict[str, object]:
    """A result as the tables write it."""
    config = {"name": f"{row}, small", "hidden_sizes": [500], "max_epochs": 60, "batch_size": 100}
    facts = {"dataset": dataset, "row": row, "valid_nll": nll + 1, "test_nll": nll, "ci95": 0.25, "masks": 1}
    facts |= {"config": config, "seed": 0, "epochs": 10, "seconds": 20.0, "commit": "abc", "budget": "evening"}
    return facts | {"command": "made paper table uci", "tried": []} | more


def write(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(rows))


def line(page: str, *starts: str) -> list[str]:
    """The cells of the line of a table that starts with these."""
    (found,) = [row for row in page.splitlines() if row.startswith(f"| {' | '.join(starts)} |")]
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_the_page_of_the_repository_is_that_of_its_results() -> None:
    page = (ROOT / "docs" / "results.md").read_text()
    assert page == results_page(ROOT / "results"), "docs/results.md is old: run made paper report"


def test_nothing_measured_is_said_with_the_command(tmp_path) -> None:
    page = results_page(tmp_path)
    for command in NAMES.values():
        assert f"run `{command}`." in page
    assert "|" not in page


def test_the_report_says_in_which_orderings_rows_were_judged() -> None:
    assert describe_orderings({"evaluation_masks": 4}) == "4 random ones"
    assert describe_orderings({"evaluation_masks": 1, "ordering": "natural"}) == "the natural one"
    assert describe_orderings({"evaluation_masks": 4, "ordering": "natural"}) == "the natural one, 3 random ones"
    assert describe_orderings({"orderings": 16, "ordering": "random"}) == "16 random ones"
    assert describe_orderings({"hidden_size": 5, "ordering": "random"}) == "a random one"
    assert describe_orderings({"ordering": "walk", "hidden_size": 5}) == "a scan of the image"
    assert describe_orderings({"ordering": "walk", "orderings": 2}) == "2 scans of the image"
    assert describe_orderings({}) == ""


def test_table_4_has_the_paper_beside_ours(tmp_path) -> None:
    rows = [result_of("adult", row, nll) for row, nll in (("MADE", 13.0), ("ours", 12.5), ("any-order", 13.0))]
    rows[-1]["config"] = {"parameters": {"evaluation_masks": 16, "ordering": "random"}}
    write(tmp_path, "uci", [*rows, result_of("web", "MADE", 30.0), result_of("dna", "ours", 1.0, test_nll=None)])
    page = results_page(tmp_path)
    assert line(page, "MADE", "paper")[2] == "13.12 ± 0.05"
    assert line(page, "MADE", "here")[2:] == ["13.00 ± 0.25", "", "", "", "", "", "", "30.00 ± 0.25"]
    assert line(page, "ours", "here")[2:5] == ["**12.50 ± 0.25**", "", ""]  # what is not finished is not shown
    assert line(page, "EoNADE 1hl (16 ord.)", "paper")[-1] == "**27.87 ± 0.20**"
    assert line(page, "DARN", "paper")[8] == "**46.10**"
    assert "275.92 ± 1.01" in page
    assert published.ABSENT["rcv1"] in page
    assert line(page, "adult", "12.50") == ["adult", "12.50", "13.00", "+4.00 %", "16 random ones"]
    how = [
        "ours, small",
        "evening",
        "1",
        "1",
        "13.50",
        "12.50 ± 0.25",
        "10",
        "20",
        "0",
        "abc",
        "`made paper table uci`",
    ]
    assert line(page, "adult", "ours")[2:] == how
    write(tmp_path, "uci", [*rows, result_of("rcv1", "MADE", 47.0)])
    assert published.ABSENT["rcv1"] not in results_page(tmp_path)


def test_table_6_and_the_claims(tmp_path) -> None:
    numbers = {(1, "1 mask"): 90.0, (2, "1 mask"): 90.25, (1, "32 masks"): 89.0, (2, "32 masks"): 87.0}
    rows = []
    for (layers, masks), nll in numbers.items():
        config = {"name": "some", "hidden_sizes": [400] * layers, "max_epochs": 60}
        rows.append(result_of("binarized_mnist", f"MADE {layers}hl ({masks})", nll, config=config))
    many = {"name": "8 networks", "members": 8, "parameters": {"hidden_sizes": [700, 700], "max_epochs": 90}}
    rows.append(result_of("binarized_mnist", "ours", 84.0, config=many))
    write(tmp_path, "mnist", rows)
    page = results_page(tmp_path)
    assert line(page, "MADE 2hl (32 masks)", "86.64 ± 0.44")[2:] == ["87.00 ± 0.25", "400 x 400", "60"]
    assert line(page, "ours")[1:] == ["", "**84.00 ± 0.25**", "700 x 700", "90"]
    assert line(page, "DBN 2hl")[1] == "≈ 84.55"
    assert "The paper's MADE has 8000 units in each layer; here it has 400" in page
    assert "With 1 mask, two layers are 0.25 nats worse here (the intervals overlap), and 1.19 worse" in page
    assert "With 32 masks, two layers are 2.00 nats better here, and 1.40 better in the paper." in page
    rows[2]["config"] = rows[2]["config"] | {"hidden_sizes": [8000]}
    write(tmp_path, "mnist", rows)
    page = results_page(tmp_path)
    assert "The paper's MADE has 8000 units in each layer; here some rows have 400" in page
    assert "With 32 masks, one layer has 8000 units here, and two have 400 x 400: no comparison." in page
    assert "With 1 mask, two layers are 0.25 nats worse here" in page
    write(tmp_path, "mnist", rows[:1])
    page = results_page(tmp_path)
    assert page.count("not both are measured here yet") == 2
    ratio, medians = {"median": 2.31, "low": 2.0, "high": 2.5}, {"1 mask": 0.2, "32 masks": 0.46}
    claim = result_of("", "a step", 0) | {"paper": "44 s and 100 s", "ratio": ratio, "medians": medians}
    write(tmp_path, "claims", [claim])
    cells = ["44 s and 100 s", "1 mask, 32 masks", "2.3 (2.0 to 2.5)", "1 mask 0.200, 32 masks 0.460"]
    assert line(results_page(tmp_path), "a step")[1:] == cells


def test_figure_2_is_a_table_and_a_picture(tmp_path) -> None:
    config = result_of("", "", 0)["config"]
    points = [
        result_of("binarized_mnist", f"{masks} {batch}", 90 + masks, masks=masks, config=config | {"batch_size": batch})
        for masks, batch in ((8, 83), (1, 83), (1, 100))
    ]
    write(tmp_path, "masks", points)
    page = results_page(tmp_path)
    assert line(page, "masks", "batches of 83", "batches of 100")
    assert line(page, "1") == ["1", "91.00 ± 0.25", "91.00 ± 0.25"]
    assert line(page, "8") == ["8", "98.00 ± 0.25", ""]
    assert "masks.png" not in page
    (tmp_path / "masks.png").write_text("")
    assert "(../results/masks.png)" in results_page(tmp_path)
    assert "(elsewhere/masks.png)" in results_page(tmp_path, "elsewhere")


def test_a_result_without_a_field_is_refused(tmp_path) -> None:
    write(tmp_path, "uci", [{"dataset": "adult", "row": "MADE"}])
    with pytest.raises(DataError, match=r"uci\.json: a result has no 'valid_nll'"):
        results_page(tmp_path)


COMMANDS = [
    "table uci",
    "table mnist",
    "table complexity",
    "figure masks",
    "figure samples",
    "figure network",
    "report",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_fast_and_every_command_has_the_common_options(command) -> None:
    code = "import sys\nfrom made.cli import main\ntry: main()\nfinally: assert not "
    code += "{'torch', 'numpy', 'sklearn', 'pyarrow', 'pydantic', 'matplotlib'} & set(sys.modules)"
    words = [sys.executable, "-c", code, "paper", *command.split(), "--help"]
    result = subprocess.run(words, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert {"--json", "--quiet", "--seed", "--results"} <= set(re.findall(r"--[a-z-]+", result.stdout))


@pytest.fixture
def here(tmp_path, monkeypatch, small) -> Path:
    """An empty folder, in which every set is a few digits, and the grid of Table 4 one tiny network."""
    monkeypatch.chdir(tmp_path)
    load, where = datasets.load, datasets.where
    images = {name: replace(small, name=name) for name in ("digits", "adult", "binarized_mnist")}
    monkeypatch.setattr(datasets, "load", lambda name: images[name] if name in images else load(name))
    monkeypatch.setattr(datasets, "where", lambda name: Path(name) if name in images else where(name))
    monkeypatch.setattr(table_uci, "cases", lambda row, grid, rows: {f"{row}-{grid}": TINY})
    return tmp_path


def test_table_uci_is_made_once(here, looks, monkeypatch) -> None:
    words = ["table", "uci", "--data", "adult", "--row", "MADE", "--row", "MADE mask sampling"]
    monkeypatch.setattr(sys, "argv", ["made", "paper", *words])
    rows = json.loads(run(*words, "--json").stdout)
    assert [(row["dataset"], row["row"]) for row in rows] == [("adult", "MADE"), ("adult", "MADE mask sampling")]
    assert rows == json.loads((here / "results" / "uci.json").read_text())
    assert rows[1]["command"] == "made paper table uci --data adult --row MADE --row 'MADE mask sampling'"
    assert looks == [50, 50]
    again = run(*words)
    assert looks == [50, 50]
    assert "there already" in again.stderr
    assert f"{rows[0]['test_nll']:.2f}" in again.stdout
    assert run(*words, "--quiet").stderr == ""


def test_table_mnist_has_the_width_that_is_asked_for_and_samples_find_its_best_model(here) -> None:
    rows = ["--row", "MADE 1hl (1 mask)", "--row", "MADE 2hl (32 masks)"]
    made = json.loads(run("table", "mnist", *rows, "--width", 6, "--epochs", 1, "--seed", 3, "--json").stdout)
    assert [row["config"]["hidden_sizes"] for row in made] == [[6], [6, 6]]
    best = min(made, key=lambda row: row["valid_nll"])["config"]["name"]
    refused = run("figure", "samples", "--model", here / "runs" / "binarized_mnist" / f"{best}-seed3", code=2)
    assert "is no model of 784 binary columns" in refused.stderr  # these have 64
    assert run("figure", "samples", "--seed", 3, code=2).stderr == refused.stderr.replace(f"{here}/", "")


def test_table_mnist_tries_the_rates_that_are_asked_for(here) -> None:
    rates = ["--rate", 0.2, "--rate", 0.1, "--rate", 0.2]
    (row,) = json.loads(
        run("table", "mnist", "--row", "MADE 1hl (1 mask)", *rates, "--width", 5, "--epochs", 1, "--json").stdout
    )
    assert [each["name"] for each in row["tried"]] == [f"1x5-1-mask-rate-{rate}-1-epochs" for rate in (0.2, 0.1)]
    assert row["valid_nll"] == min(each["valid_nll"] for each in row["tried"])
    for bad in ("0", "-1", "nan", "inf"):
        assert "'--rate' should be a number above 0" in run("table", "mnist", "--rate", bad, code=2).stderr
    assert "are for the paper's rows" in run("table", "mnist", "--row", "ours", "--rate", 0.1, code=2).stderr


def test_samples_are_drawn_beside_their_neighbours(here) -> None:
    refused = run("figure", "samples", "--data", "digits", code=2)
    assert "names no model of digits" in refused.stderr
    folder = here / "runs" / "digits" / "2x6-32-masks-seed7"
    data = datasets.load("digits")
    MADE(hidden_sizes=(6, 6), masks=4, max_epochs=1, columns="binary").fit(data.train).save(folder)
    row = result_of("digits", "MADE 2hl (32 masks)", 20.0, seed=7, config={"name": "2x6-32-masks"})
    worse = result_of("digits", "MADE 1hl (1 mask)", 30.0, config={"name": "nothing"})
    write(here / "results", "mnist", [worse, row])
    (result,) = json.loads(run("figure", "samples", "--data", "digits", "--json", "--quiet").stdout)
    assert result["config"]["name"] == folder.name
    assert set(FIELDS) <= set(result)
    assert (result["samples"], result["test_nll"], result["seed"]) == (100, None, 0)
    far = [(row != data.train).sum(axis=1).min() for row in data.test]
    assert result["nearest_of_test"] == pytest.approx(np.mean(far))
    assert result["nearest"] > result["nearest_of_test"]
    assert json.loads((here / "results" / "samples.json").read_text()) == [result]
    assert (here / "results" / "samples.png").read_bytes().startswith(b"\x89PNG")
    said = run("figure", "samples", "--data", "digits", "--model", folder, "--masks", 5, "--out", "new/my.svg")
    assert "50 samples" in said.stdout
    assert "no more than 4 masks" in said.stderr
    assert "<svg" in (here / "new" / "my.svg").read_text()
    assert "50 samples of `2x6-32-masks-seed7`" in results_page(here / "results")


def test_figure_masks_goes_on_and_draws(here, looks) -> None:
    words = ["figure", "masks", "--units", 4, "--epochs", 1, "--batches", 50]
    points = json.loads(run(*words, "--masks", "1,2", "--json").stdout)
    assert [point["masks"] for point in points] == [1, 2]
    picture = here / "results" / "masks.png"
    picture.unlink()
    run(*words, "--masks", "1,2", "--quiet")
    assert picture.exists()
    assert looks == [50, 50]
    run(*words, "--masks", "4", "--quiet")
    assert len(json.loads((here / "results" / "masks.json").read_text())) == 3
    assert line(results_page(here / "results"), "4")


def test_table_complexity_is_written_and_a_quick_one_replaces_no_full_one(here) -> None:
    rows = json.loads(run("table", "complexity", "--quick", "--json").stdout)
    path = here / "results" / "complexity.json"
    assert json.loads(path.read_text()) == rows
    assert all(set(FIELDS) <= set(row) for row in rows)
    assert len([row for row in rows if "series" in row]) == 13
    said = run("table", "complexity", "--quick")
    assert said.stderr.count("exponent") == 13
    page = results_page(here / "results")
    assert said.stdout.strip() in page
    assert "the times are meaningless" in page
    write(here / "results", "complexity", [row | {"budget": "full"} for row in rows])
    before = path.read_bytes()
    assert "does not replace" in run("table", "complexity", "--quick").stderr
    assert path.read_bytes() == before
    assert "the times are meaningless" not in results_page(here / "results")


def test_figure_network_is_of_any_connectivity(here) -> None:
    said = run("figure", "network")
    assert said.stdout == "p(x2)\np(x3 | x2)\np(x1 | x2, x3)\n"
    assert (here / "results" / "network.png").read_bytes().startswith(b"\x89PNG")
    assert "(../results/network.png)" in results_page(here / "results")
    words = ["--ordering", "2, 1", "--hidden", "1,1,0", "--names", "a,b", "--direct", "--out", "new/two.pdf"]
    assert run("figure", "network", *words).stdout == "p(b)\np(a | b)\n"
    assert (here / "new" / "two.pdf").read_bytes().startswith(b"%PDF")
    drawn = [
        json.loads(run("figure", "network", "--columns", 5, "--hidden-sizes", "4", "--mask", mask, "--json").stdout)
        for mask in (1, 1, 2)
    ]
    assert drawn[0][0]["config"] == drawn[1][0]["config"] != drawn[2][0]["config"]
    assert [len(layer) for layer in drawn[0][0]["config"]["hidden"]] == [4]
    assert sorted(drawn[0][0]["config"]["ordering"]) == [1, 2, 3, 4, 5]
    assert run("figure", "network", "--hidden", "").stdout == said.stdout


def test_a_stopped_command_says_how_to_go_on(here, monkeypatch) -> None:
    def stopped(self, data, name, parameters):
        raise Interrupted("stopped after 3 updates. Its state is in runs, to go on from with 'resume_from'.")

    monkeypatch.setattr(GridSearch, "fit", stopped)
    monkeypatch.setattr(sys, "argv", ["made", "paper", "table", "uci"])
    said = run("table", "uci", "--row", "MADE", "--data", "adult", code=130).stderr
    assert said == "stopped after 3 updates. To resume: made paper table uci\n"


def test_the_report_is_written_and_checked(here) -> None:
    write(here / "results", "uci", [result_of("adult", "MADE", 13.0)])
    page = here / "docs" / "results.md"
    assert "write it again" in run("report", "--check", code=3).stderr
    assert not page.exists()
    assert json.loads(run("report", "--json").stdout) == {"out": "docs/results.md", "changed": True}
    assert page.read_text() == results_page(here / "results")
    assert run("report", "--check", "--quiet").stderr == ""
    assert json.loads(run("report", "--json").stdout)["changed"] is False
    page.write_text(page.read_text().replace("13.00", "12.00"))
    assert "docs/results.md is not what results has" in run("report", "--check", code=3).stderr
    assert "12.00" in page.read_text()
    run("report")
    assert "12.00" not in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["table", "uci", "--row", "best"], 2, "'--row': 'best' is not a row; the rows are MADE"),
        (["table", "uci", "--data", "rcv1"], 2, "in no source that could be reached"),
        (["table", "uci", "--data", "adult", "--data", "nothing"], 3, "'nothing' is not a dataset"),
        (["table", "uci", "--grid", "small"], 2, "--grid"),
        (["table", "uci", "--data", "adult", "--results", "FILE"], 3, "'--results': cannot write to FILE"),
        (["table", "uci", "--data", "adult", "--runs", "FILE/runs"], 3, "'--runs': cannot write to FILE/runs"),
        (["table", "uci", "--data", "adult", "--row", "MADE", "--results", "BAD"], 3, "BAD/uci.json cannot be read"),
        (["table", "mnist", "--row", "MADE"], 2, "MADE 2hl (32 masks)"),
        (["table", "mnist", "--width", "0"], 2, "--width"),
        (["table", "complexity", "--quick", "--results", "FILE"], 3, "cannot write to FILE"),
        (["figure", "masks", "--masks", "1,few"], 2, "'--masks' should be whole numbers, at least 1"),
        (["figure", "masks", "--masks", "0"], 2, "'--masks'"),
        (["figure", "masks", "--batches", ""], 2, "'--batches'"),
        (["figure", "masks", "--out", "picture.txt"], 2, "'--out' should end in .png, .svg or .pdf"),
        (["figure", "masks", "--out", "FILE/picture.png"], 3, "'--out': cannot write to FILE"),
        (["figure", "samples", "--data", "dna"], 2, "dna is no set of images"),
        (["figure", "samples"], 2, "make one (made paper table mnist)"),
        (["figure", "samples", "--model", "nothing"], 4, "no such folder"),
        (["figure", "samples", "--masks", "0"], 2, "--masks"),
        (["figure", "network", "--ordering", "3,1,3"], 2, "each position from 1 to 3 once"),
        (["figure", "network", "--ordering", "0,1,2"], 2, "'--ordering' should be whole numbers, at least 1"),
        (["figure", "network", "--hidden", "1,2;3"], 2, "degrees from 0 to 2"),
        (["figure", "network", "--hidden", "1,2;;1"], 2, "'--hidden' should be whole numbers"),
        (["figure", "network", "--names", "a,b"], 2, "'--names' should have 3 names"),
        (["figure", "network", "--columns", "4", "--ordering", "1,2"], 2, "exclude each other"),
        (["figure", "network", "--mask", "4"], 2, "--columns"),
        (["figure", "network", "--columns", "99"], 2, "99 columns"),
        (["figure", "network", "--columns", "4", "--hidden-sizes", "0"], 2, "'--hidden-sizes'"),
        (["report", "--results", "nothing"], 3, "there is no folder nothing"),
        (["report", "--results", "BAD"], 3, "BAD/uci.json cannot be read"),
        (["report", "--results", ".", "--out", "FILE/results.md"], 3, "'--out': cannot write FILE/results.md"),
    ],
)
def test_every_error_is_a_sentence_and_a_code(here, arguments, code, said) -> None:
    (here / "FILE").write_text("")
    (here / "BAD").mkdir()
    (here / "BAD" / "uci.json").write_text("[{")
    result = run(*arguments, code=code)
    assert said in result.stderr
    assert result.stdout == ""


class Known:
    """A system whose NLL is its rate, known in a way of its own."""

    size, epochs = 3, 2

    def __init__(self, learning_rate, seed, kind="estimate", **others) -> None:
        self.rate, self.kind = learning_rate, kind

    def fit(self, train, valid):
        if self.rate > 1:
            raise Diverged("not finite")
        return self

    def log_prob(self, rows) -> LogProb:
        return LogProb(np.full(len(rows), -self.rate), self.kind, 0.0 if self.kind == "exact" else 0.5)


def test_a_row_of_another_system_says_how_it_is_known(small, search, monkeypatch) -> None:
    from made.baselines import rbm

    looks = []
    monkeypatch.setattr(
        Known, "log_prob", lambda self, rows, own=Known.log_prob: looks.append(len(rows)) or own(self, rows)
    )
    monkeypatch.setattr(rbm, "RBM", Known)
    search = replace(search, results=ResultsFile(search.results.path.with_name("baselines.json")))
    data = replace(small, name="adult")
    grid = {"evening": ({"learning_rate": 2.0}, {"learning_rate": 0.5}, {"learning_rate": 0.25})}
    for kind, ci95 in (("estimate", 0.98), ("bound", 0.98), ("exact", 0.0)):
        row = table_baselines.Baseline("rbm", "RBM", {"kind": kind}, grid)
        monkeypatch.setitem(table_baselines.ROWS, "RBM", row)
        looks.clear()
        (result,) = table_baselines.make(search, data, ["RBM"])
        assert looks == [len(data.valid), len(data.valid), len(data.test)]  # test rows are asked about once
        assert (result["kind"], result["valid_nll"], result["test_nll"]) == (kind, 0.25, 0.25)
        assert result["ci95"] == pytest.approx(ci95)
        assert result["config"]["learning_rate"] == 0.25
        assert "failed" in result["tried"][0]
        sign = {"estimate": "≈ 0.25 ± 0.98", "bound": "≤ 0.25 ± 0.98", "exact": "0.25 ± 0.00"}[kind]
        assert f" {sign} |" in results_page(search.results.path.parent)
        assert table_baselines.make(search, data, ["RBM"]) == [result]
        assert len(looks) == 3


def test_the_rows_of_other_systems_are_those_of_the_paper() -> None:
    assert set(table_baselines.ROWS) == {row for row in published.UCI if not row.startswith("MADE")}
    assert set(table_baselines.MNIST_ROWS) == {row for row in published.MNIST if not row.startswith("MADE")}
    eonade = "EoNADE 1hl (16 ord.)"
    assert list(table_baselines.cases("web", eonade, "evening", 10**7)) == ["EoNADE, learning_rate 0.005"]
    assert len(table_baselines.cases("web", eonade, "full", 10**7)) == 6
    assert len(table_baselines.cases("web", eonade, "evening")) == 2
    for name in ("adult", "binarized_mnist"):
        for row in table_baselines.rows_of(name):
            for budget in ("evening", "full"):
                for parameters in table_baselines.cases(name, row, budget).values():
                    baseline = table_baselines.rows_of(name)[row]
                    system = getattr(import_module(f"made.baselines.{baseline.module}"), baseline.system)
                    assert system(**parameters, seed=3).seed == 3
