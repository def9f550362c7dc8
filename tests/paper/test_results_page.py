"""docs/results.md, generated from the results."""

from __future__ import annotations

import pytest

from made.errors import DataError
from made.paper import published
from made.paper.results_page import NAMES, describe_orderings, results_page
from paper_results import ROOT, line, result_of, write


def test_the_page_of_the_repository_is_that_of_its_results() -> None:
    page = (ROOT / "docs" / "results.md").read_text()
    assert page == results_page(ROOT / "results"), "docs/results.md is old: run made paper report"


def test_missing_results_name_the_command(tmp_path) -> None:
    page = results_page(tmp_path)
    for command in NAMES.values():
        assert f"run `{command}`." in page
    assert "|" not in page


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"evaluation_masks": 4}, "4 random ones"),
        ({"evaluation_masks": 1, "ordering": "natural"}, "the natural one"),
        ({"evaluation_masks": 4, "ordering": "natural"}, "the natural one, 3 random ones"),
        ({"orderings": 16, "ordering": "random"}, "16 random ones"),
        ({"hidden_size": 5, "ordering": "random"}, "a random one"),
        ({"ordering": "walk", "hidden_size": 5}, "a scan of the image"),
        ({"ordering": "walk", "orderings": 2}, "2 scans of the image"),
        ({}, ""),
    ],
)
def test_the_page_has_the_orderings_in_which_rows_were_scored(parameters, said) -> None:
    assert describe_orderings(parameters) == said


@pytest.fixture
def uci_rows() -> list[dict]:
    rows = [result_of("adult", row, nll) for row, nll in (("MADE", 13.0), ("ours", 12.5), ("any-order", 13.0))]
    rows[-1]["config"] = {"parameters": {"evaluation_masks": 16, "ordering": "random"}}
    return rows


def test_table_4_has_the_paper_beside_ours(tmp_path, uci_rows) -> None:
    write(tmp_path, "uci", [*uci_rows, result_of("web", "MADE", 30.0), result_of("dna", "ours", 1.0, test_nll=None)])
    page = results_page(tmp_path)
    assert line(page, "MADE", "paper")[2] == "13.12 ± 0.05"
    assert line(page, "MADE", "here")[2:] == ["13.00 ± 0.25", "", "", "", "", "", "", "30.00 ± 0.25"]
    assert line(page, "ours", "here")[2:5] == ["**12.50 ± 0.25**", "", ""]  # what is not finished is not shown


def test_the_best_of_the_paper_is_bold(tmp_path, uci_rows) -> None:
    write(tmp_path, "uci", uci_rows)
    page = results_page(tmp_path)
    assert line(page, "EoNADE 1hl (16 ord.)", "paper")[-1] == "**27.87 ± 0.20**"
    assert line(page, "DARN", "paper")[8] == "**46.10**"
    assert "275.92 ± 1.01" in page


def test_the_gap_of_any_order_models_and_the_runs_are_listed(tmp_path, uci_rows) -> None:
    write(tmp_path, "uci", uci_rows)
    page = results_page(tmp_path)
    assert line(page, "adult", "12.50") == ["adult", "12.50", "13.00", "+4.00 %", "16 random ones"]
    how = ["ours, small", "evening", "1", "1", "13.50", "12.50 ± 0.25", "10", "20", "0", "abc"]
    assert line(page, "adult", "ours")[2:] == [*how, "`made paper table uci`"]


def test_an_absent_dataset_is_explained_until_it_has_a_result(tmp_path, uci_rows) -> None:
    write(tmp_path, "uci", uci_rows)
    assert published.ABSENT["rcv1"] in results_page(tmp_path)
    write(tmp_path, "uci", [*uci_rows, result_of("rcv1", "MADE", 47.0)])
    assert published.ABSENT["rcv1"] not in results_page(tmp_path)


@pytest.fixture
def mnist_rows() -> list[dict]:
    """Table 6 with networks of 400 units, and an ensemble of our own."""
    numbers = {(1, "1 mask"): 90.0, (2, "1 mask"): 90.25, (1, "32 masks"): 89.0, (2, "32 masks"): 87.0}
    rows = []
    for (layers, masks), nll in numbers.items():
        config = {"name": "some", "hidden_sizes": [400] * layers, "max_epochs": 60}
        rows.append(result_of("binarized_mnist", f"MADE {layers}hl ({masks})", nll, config=config))
    many = {"name": "8 networks", "members": 8, "parameters": {"hidden_sizes": [700, 700], "max_epochs": 90}}
    return [*rows, result_of("binarized_mnist", "ours", 84.0, config=many)]


def test_table_6_has_the_paper_beside_ours(tmp_path, mnist_rows) -> None:
    write(tmp_path, "mnist", mnist_rows)
    page = results_page(tmp_path)
    assert line(page, "MADE 2hl (32 masks)", "86.64 ± 0.44")[2:] == ["87.00 ± 0.25", "400 x 400", "60"]
    assert line(page, "ours")[1:] == ["", "**84.00 ± 0.25**", "700 x 700", "90"]
    assert line(page, "DBN 2hl")[1] == "≈ 84.55"


def test_table_6_has_the_gain_of_each_part_of_a_deep_machine(tmp_path) -> None:
    parts = {"valid_parts": {"rbm": 91.0, "bound": 90.75}}
    deep = [result_of("binarized_mnist", "DBN 2hl", 88.0, kind="estimate", **parts)]
    deep += [result_of("binarized_mnist", "DBM 2hl", 89.75, kind="bound", **parts)]
    write(tmp_path, "baselines", deep)
    page, begin = (
        results_page(tmp_path),
        "on validation rows: 91.00 as the RBM that it starts as, 90.75 by the bound of",
    )
    assert f"DBN 2hl {begin} both layers, 89.00 as estimated." in page
    assert f"DBM 2hl {begin} both layers." in page


def test_one_layer_is_compared_with_two(tmp_path, mnist_rows) -> None:
    write(tmp_path, "mnist", mnist_rows)
    page = results_page(tmp_path)
    assert "The paper's MADE has 8000 units in each layer; here it has 400" in page
    assert "With 1 mask, two layers are 0.25 nats worse here (the intervals overlap), and 1.19 worse" in page
    assert "With 32 masks, two layers are 2.00 nats better here, and 1.40 better in the paper." in page


def test_layers_of_different_sizes_are_not_compared(tmp_path, mnist_rows) -> None:
    mnist_rows[2]["config"] |= {"hidden_sizes": [8000]}
    write(tmp_path, "mnist", mnist_rows)
    page = results_page(tmp_path)
    assert "The paper's MADE has 8000 units in each layer; here some rows have 400" in page
    assert "With 32 masks, one layer has 8000 units here, and two have 400 x 400: no comparison." in page
    assert "With 1 mask, two layers are 0.25 nats worse here" in page


def test_what_is_not_measured_is_not_compared(tmp_path, mnist_rows) -> None:
    write(tmp_path, "mnist", mnist_rows[:1])
    assert results_page(tmp_path).count("not both are measured here yet") == 2


def test_claims_are_shown_beside_the_ratio_that_was_measured(tmp_path) -> None:
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
