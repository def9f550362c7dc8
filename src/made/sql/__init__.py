"""The queries of a model as functions of DuckDB: :func:`register`. Needs duckdb (the extra `sql`)."""

from __future__ import annotations

try:
    from made.sql.register import Registered, register
except ModuleNotFoundError as error:
    if error.name != "duckdb":
        raise
    raise ImportError("SQL needs a package: pip install 'made[sql]'.") from None

__all__ = ["Registered", "register"]
