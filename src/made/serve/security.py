"""Who may ask: the Host of a request, its origin, its token; and the headers of every answer."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from made.serve.problems import Problem

__all__ = ["HEADERS", "Guard", "is_loopback"]

# The page is made of files of its own, and of nothing else: no inline script, no style attribute, no other site.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Guard:
    """Refuses requests that do not come from the page, or from a client that knows the token.

    Arguments:
        host: the address that the server listens on.
        allowed: more names that it answers to.
        token: what clients send as ``Authorization: Bearer``; without one, nothing is asked for.
    """

    def __init__(self, host: str = "127.0.0.1", allowed: Collection[str] = (), token: str | None = None) -> None:
        self.loopback = is_loopback(host)
        self.allowed = {"localhost", *(name.lower().rstrip(".") for name in allowed)}
        self._token = None if token is None else token.encode()

    def check(self, path: str, headers: Headers) -> None:
        """Raise a :class:`Problem` if the request is refused."""
        self._check_host(headers)
        self._check_origin(headers)
        if self._token is not None and (path.startswith(("/api", "/openapi")) or path == "/metrics"):
            scheme, _, token = headers.get("authorization", "").partition(" ")
            right = hmac.compare_digest(token.strip().encode("latin-1", "replace"), self._token)
            if scheme.lower() != "bearer" or not right:
                raise Problem("token", "the request has no token, or a wrong one.")

    def _check_host(self, headers: Headers) -> None:
        """Refuse unknown host names, as a protection against DNS rebinding."""
        hosts = headers.getlist("host")
        try:
            name = (urlsplit(f"//{hosts[0]}").hostname or "").rstrip(".")
            if len(hosts) != 1 or "@" in hosts[0]:
                raise ValueError
        except (IndexError, ValueError):
            raise Problem("host", "the request has no valid Host header.") from None
        if name in self.allowed:
            return
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            raise Problem("host", f"{name[:200]!r} is not a name of this server.") from None
        if self.loopback and not address.is_loopback:
            raise Problem("host", f"{name!r} is not an address of this server.")

    def _check_origin(self, headers: Headers) -> None:
        origin, host = headers.get("origin"), headers.get("host", "")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Problem("origin", "the request comes from a page of another site.")
        # Compared as text: an origin that is no address cannot be taken apart.
        if origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
            raise Problem("origin", f"the request comes from {origin[:200]!r}.")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
        (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
