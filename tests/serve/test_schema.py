"""The schema of the API: requests made from it, right and wrong, never make the server fail."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install 'made[dev]'")

# A schema cannot say which values a column has: some requests that it allows are refused.
from schemathesis.specs.openapi.checks import positive_data_acceptance  # noqa: E402

EXAMPLES = int(os.environ.get("MADE_SCHEMA_EXAMPLES", "5"))  # of each operation, of right requests and of wrong ones
OPERATIONS = [
    "GET /healthz",
    "GET /metrics",
    "GET /api/models",
    "GET /api/models/{model}/info",
    "GET /api/models/{model}/columns",
    "GET /api/models/{model}/dependence",
    *(
        f"POST /api/models/{{model}}/{name}"
        for name in ("conditionals", "probability", "sample", "score", "impute", "predict", "explain", "denoise")
    ),
]


@pytest.fixture(scope="module")
def operations(server):
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    return {found.ok().label: found.ok() for found in schema.get_all_operations()}


def test_the_schema_lists_every_operation(operations) -> None:
    assert sorted(operations) == sorted(OPERATIONS)


@pytest.mark.parametrize(
    ("label", "mode"),
    [(label, "positive") for label in OPERATIONS] + [(label, "negative") for label in OPERATIONS if "{" in label],
)
def test_no_request_makes_the_server_fail(operations, label, mode) -> None:
    operation = operations[label]

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
    def ask(case) -> None:
        answer = case.call(timeout=30)
        assert answer.status_code < 500, answer.text
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == ["application/problem+json"]
        case.validate_response(answer, excluded_checks=[positive_data_acceptance])

    ask()
