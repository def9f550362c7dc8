"""Who is answered: by the Host, the origin and the token of a request."""

from __future__ import annotations

import pytest
from server import live
from starlette.datastructures import Headers

from made.serve.problems import Problem
from made.serve.security import Guard

TOKEN = "0123456789abcdef"


def refused(guard: Guard, path: str = "/api/models", **headers: str) -> str | None:
    """The kind of problem that a guard has with a request."""
    names = {name.replace("_", "-"): value for name, value in ({"host": "127.0.0.1:8000"} | headers).items()}
    try:
        guard.check(path, Headers(names))
    except Problem as problem:
        return problem.kind
    return None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost:8000", "[::1]:8000", "LOCALHOST"])
def test_loopback_is_answered(host) -> None:
    assert refused(Guard(), host=host) is None


@pytest.mark.parametrize(
    "host", ["evil.com", "127.0.0.1.evil.com", "a@127.0.0.1", "10.0.0.1", "", "[", "localhost.evil"]
)
def test_other_hosts_are_refused(host) -> None:
    """A name that resolves to this address may be that of a hostile page in the user's own browser."""
    assert refused(Guard(), host=host) == "host"


def test_names_can_be_allowed() -> None:
    assert refused(Guard(allowed=["Churn.example"]), host="churn.example:80") is None
    assert refused(Guard("0.0.0.0", token=TOKEN), "/", host="10.0.0.1") is None
    assert refused(Guard("0.0.0.0", token=TOKEN), "/", host="evil.com") == "host"


def test_another_site_is_refused() -> None:
    assert refused(Guard(), origin="http://127.0.0.1:8000") is None
    assert refused(Guard(), origin="http://127.0.0.1:9000") == "origin"
    assert refused(Guard(), origin="null") == "origin"
    assert refused(Guard(), origin="http://[") == "origin"  # no address at all
    assert refused(Guard(), origin="http://127.0.0.1:8000@evil.com") == "origin"
    assert refused(Guard(), origin="https://127.0.0.1:8000") is None  # a proxy that has TLS
    assert refused(Guard(), sec_fetch_site="same-origin") is None
    assert refused(Guard(), sec_fetch_site="cross-site") == "origin"


@pytest.mark.parametrize("path", ["/api/models", "/api/models/people/score", "/openapi.json", "/metrics"])
def test_a_token_is_compared(path) -> None:
    guard = Guard(token=TOKEN)
    assert refused(guard, path, authorization=f"Bearer {TOKEN}") is None
    assert refused(guard, path, authorization=f"bearer  {TOKEN} ") is None
    for wrong in ("", "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", TOKEN, "Bearer é"):
        assert refused(guard, path, authorization=wrong) == "token"


def test_the_page_and_the_health_need_no_token() -> None:
    for path in ("/", "/static/page.js", "/healthz"):
        assert refused(Guard(token=TOKEN), path) is None


def test_a_server_with_a_token() -> None:
    with live(guard=Guard(token=TOKEN)) as server:
        answer = server.client.get("/api/models")
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert server.client.get("/api/models", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert server.client.get("/").status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/models", "/nothing", "/healthz"])
def test_every_answer_has_a_strict_policy(server, path) -> None:
    headers = server.client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("name", ["Origin", "Host", "Authorization", "Accept", "Content-Type", "If-None-Match"])
@pytest.mark.parametrize(
    "value", ["", "http://[", "[", "a@b", "\xb2", "//", "q=,;=", "x" * 4000, "Bearer \xff", "*/*;q=NaN"]
)
def test_no_header_makes_the_server_fail(server, name, value) -> None:
    for path in ("/", "/api/models/people/score"):
        call = server.client.get if path == "/" else server.client.post
        assert call(path, headers={name: value.encode("latin-1")}).status_code < 500


def test_a_refused_host_gets_a_problem(server) -> None:
    answer = server.client.get("/healthz", headers={"host": "evil.com"})
    assert (answer.status_code, answer.json()["type"]) == (421, "urn:made:host")
    assert "content-security-policy" in answer.headers
