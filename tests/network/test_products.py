"""Products by oneDNN equal those by torch, for every layout in memory that the engine has."""

from __future__ import annotations

import itertools

import pytest
import torch

from made.network import products
from made.network.products import add_product_, addmm, mm


@pytest.fixture(autouse=True)
def onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    """oneDNN, whatever the processor and the size of the product."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("torch was built without oneDNN")
    monkeypatch.setattr(products, "by_onednn", lambda: True)
    monkeypatch.setattr(products, "LEAST", 1)
    monkeypatch.setattr(products, "LEAST_SIDE", 1)


def matrix(rows: int, columns: int, layout: str) -> torch.Tensor:
    whole = torch.randn(rows + 3, columns + 5)
    return {
        "rows": lambda: whole[:rows, :columns].contiguous(),
        "columns": lambda: whole[:rows, :columns].t().contiguous().t(),
        "part of rows": lambda: whole[:rows, 2 : columns + 2],
        "part of columns": lambda: torch.randn(columns + 5, rows + 3).t()[1 : rows + 1, :columns],
    }[layout]()


LAYOUTS = ["rows", "columns", "part of rows", "part of columns"]


@pytest.mark.parametrize(("left", "right"), list(itertools.product(LAYOUTS, LAYOUTS)))
@pytest.mark.parametrize("shape", [(7, 5, 11), (1, 5, 11), (7, 1, 11), (7, 5, 1), (40, 30, 2)])
def test_products_of_all_layouts_equal_those_of_torch(left, right, shape) -> None:
    a, b, add = matrix(*shape[:2], left), matrix(*shape[1:], right), torch.randn(shape[0], 1)
    expected = a.double() @ b.double()
    assert torch.allclose(mm(a, b).double(), expected, atol=1e-5)
    assert torch.allclose(addmm(add, a, b).double(), add + expected, atol=1e-5)
    row = torch.randn(1, 2 * shape[2])[:, ::2]
    assert torch.allclose(addmm(row, a, b).double(), row + expected, atol=1e-5)
    by_rows = mm(a, b, by_rows=True)
    assert by_rows.is_contiguous()
    assert torch.allclose(by_rows.double(), expected, atol=1e-5)
    for layout in LAYOUTS:
        out = matrix(shape[0], shape[2], layout).fill_(torch.nan)
        assert mm(a, b, out=out) is out
        assert torch.allclose(out.double(), expected, atol=1e-5)
        add_product_(out, a, b)
        assert torch.allclose(out.double(), 2 * expected, atol=1e-5)
        assert addmm(add, a, b, out=out) is out
        assert torch.allclose(out.double(), add + expected, atol=1e-5)


def test_a_large_result_is_written_in_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "STRIP", 16)
    a, b = torch.randn(9, 4), torch.randn(4, 7)
    for layout in LAYOUTS:
        assert torch.allclose(mm(a, b, out=matrix(9, 7, layout)), a @ b, atol=1e-6)


def test_products_that_are_recorded_have_gradients() -> None:
    a, b = torch.randn(3, 4, requires_grad=True), torch.randn(4, 5)
    (gradient,) = torch.autograd.grad(addmm(torch.zeros(3, 1), a, b).sum(), a)
    assert torch.allclose(gradient, b.sum(1).expand(3, 4), atol=1e-6)
    with torch.no_grad():
        assert not mm(a, b).requires_grad


def test_doubles_stay_doubles() -> None:
    a, b = torch.randn(3, 4, dtype=torch.float64), torch.randn(4, 5, dtype=torch.float64)
    assert torch.equal(mm(a, b), torch.mm(a, b))


def test_a_product_with_nothing_to_add_up() -> None:
    assert torch.equal(mm(torch.ones(3, 0), torch.ones(0, 2)), torch.zeros(3, 2))
    assert mm(torch.ones(0, 3), torch.ones(3, 2)).shape == (0, 2)


def test_bits_do_not_depend_on_how_rows_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "LEAST", 40 * 30)
    a, b = torch.randn(64, 40), torch.randn(40, 30)
    assert torch.equal(mm(a, b), torch.cat([mm(part, b) for part in a.split(16)]))
