"""The application: the page, and the HTTP API over the queries of one or several models."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from made._version import __version__
from made.errors import UnseenWarning
from made.serve.answers import Answer, as_json
from made.serve.bodies import ARROW, CSV, JSON, PARQUET, parse_json, read_table
from made.serve.bounds import Bounds
from made.serve.describe import columns, info
from made.serve.gate import Gate
from made.serve.headers import check_parameters, media_type, wanted
from made.serve.metrics import CONTENT_TYPE, Metrics
from made.serve.operations import Served, with_unseen
from made.serve.problems import Problem, problem_of
from made.serve.schemas import (
    NUMBER,
    VALUE,
    Absent,
    ConditionalsBody,
    Level,
    ProbabilityBody,
    SampleBody,
    Seed,
    json_body,
    problems,
    rows_answer,
    rows_body,
)
from made.serve.security import Guard
from made.serve.worker import Worker

__all__ = ["create_app"]

log = logging.getLogger("made.serve")
STATIC = Path(__file__).with_name("static")
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
API = "/api/models/{model}"


def create_app(models: Sequence[Served], bounds: Bounds | None = None, guard: Guard | None = None) -> Gate:
    """The application of some models, to be run by a server such as uvicorn.

    Arguments:
        models: the models, with different names.
        bounds: how much a request may ask for.
        guard: who may ask. Default: loopback, without a token.
    """
    return _Server(models, bounds or Bounds(), guard or Guard()).gate


class _Server:
    """What the routes of one application share."""

    def __init__(self, models: Sequence[Served], bounds: Bounds, guard: Guard) -> None:
        self.models, self.bounds = {each.name: each for each in models}, bounds
        if len(self.models) != len(models):
            raise ValueError(f"the models should have different names, not {', '.join(each.name for each in models)}.")
        self.worker = Worker(bounds.waiting)
        self.metrics = Metrics(self.worker)
        self.app = FastAPI(
            title="made",
            version=__version__,
            description="Queries about the distribution of a table. Every probability is one under the fitted model.",
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,
            lifespan=self._lifespan,
        )
        self.app.add_exception_handler(RequestValidationError, _malformed)
        self.app.add_exception_handler(HTTPException, _refused)
        self.app.add_exception_handler(Problem, _problem)
        self._add_pages()
        self._add_facts()
        self._add_questions()
        self._add_rows()
        for operations in self.app.openapi()["paths"].values():  # the names of the models, for generated clients
            for operation in operations.values():
                for parameter in operation.get("parameters", []):
                    if parameter["in"] == "path":
                        parameter["schema"]["enum"] = list(self.models)
        self.gate = Gate(self.app, guard, bounds, self.metrics)

    @asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        yield
        self.worker.stop()

    def model(self, name: str) -> Served:
        """A model by its name."""
        if name not in self.models:
            raise Problem("not-found", f"there is no model {name[:200]!r}: there are {', '.join(self.models)}.")
        return self.models[name]

    async def ask(self, request: Request, work: Callable[[], Any]) -> Any:
        """Let the worker do some work for a request."""
        try:
            return await self.worker.run(work, request.state.deadline, request.is_disconnected)
        except Exception as error:
            problem = problem_of(error)
            if problem.kind == "internal":
                log.exception("%s %s failed", request.method, request.url.path)
            raise problem from error

    async def answer(self, request: Request, model: str, work: Callable[[Served, bytes], Any]) -> Response:
        """The answer to a question: ``work`` gets the model and the body."""
        served, kind = self.model(model), wanted(request)
        check_parameters(request)
        try:
            content = b"".join([chunk async for chunk in request.stream()])
        except ClientDisconnect:
            raise Problem("gone", "the body was cut short.") from None

        def find() -> bytes | Answer:
            found, unseen = with_unseen(partial(work, served, content))
            facts = _counted(unseen)
            if isinstance(found, Answer):
                return Answer(found.table, {**found.facts, **facts})
            return as_json(found | facts)

        found = await self.ask(request, find)
        if not isinstance(found, Answer):
            return Response(found, media_type=JSON)
        self.metrics.rows(request.scope["route"].path, len(found.table))
        return StreamingResponse(found.stream(kind), media_type=kind)

    async def about_rows(
        self, request: Request, model: str, work: Callable[[Served, Any], Answer], absent: str
    ) -> Response:
        """The answer to a question about rows in the body."""
        kind = media_type(request, (JSON, CSV, PARQUET, ARROW))

        def read(served: Served, content: bytes) -> Answer:
            rows, differs = read_table(kind, content, served.names, self.bounds), dict[str, Any]()
            if absent == "missing":
                rows, differs = served.complete(rows)
            found = work(served, rows)
            return Answer(found.table, {**found.facts, **differs})

        return await self.answer(request, model, read)

    async def about_json(
        self, request: Request, model: str, kind: type[BaseModel], work: Callable[[Served, Any], Any]
    ) -> Response:
        """The answer to a question in a body of JSON."""
        media_type(request, (JSON,))
        return await self.answer(request, model, lambda served, content: work(served, parse_json(kind, content)))

    def check_samples(self, count: int) -> None:
        """Refuse more than the limit."""
        if count > self.bounds.samples:
            raise Problem("too-many-samples", f"{count:,} are more than {self.bounds.samples:,}, the server's limit.")

    def _add_pages(self) -> None:
        app, files = self.app, {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in TYPES}

        @app.get("/", include_in_schema=False)
        async def index(request: Request) -> Response:
            return _file(request, files, "index.html")

        @app.get("/static/{name}", include_in_schema=False)
        async def static(request: Request, name: str) -> Response:
            return _file(request, files, name)

        @app.get("/healthz", summary="Whether the server answers", responses=problems(403, 421, 503))
        async def healthz() -> dict[str, str]:
            if self.worker.stopping:
                raise Problem("stopping", "the server is stopping.")
            return {"status": "ok", "made": __version__}

        text = {"description": "Metrics.", "content": {"text/plain": {"schema": {"type": "string"}}}}

        @app.get("/metrics", summary="Metrics for Prometheus", responses={200: text, **problems(401, 403, 421)})
        async def metrics() -> Response:
            return Response(self.metrics.text(), media_type=CONTENT_TYPE)

    def _add_facts(self) -> None:
        app, statuses = self.app, problems(401, 403, 404, 421, 422, 429, 503)

        @app.get("/api/models", summary="The models", responses=problems(401, 403, 421))
        async def models() -> list[dict[str, Any]]:
            return [
                {"name": each.name, "columns": len(each.names), "rows": each.model.config.data.rows}
                for each in self.models.values()
            ]

        @app.get(f"{API}/info", summary="What a model is", responses=statuses)
        async def about(model: str) -> Response:
            served = self.model(model)
            return Response(as_json({"name": served.name} | info(served.model)), media_type=JSON)

        @app.get(f"{API}/columns", summary="The columns of a model", responses=statuses)
        async def of_columns(model: str) -> Response:
            return Response(as_json(columns(self.model(model).model)), media_type=JSON)

        @app.get(f"{API}/dependence", summary="How much each column tells of each other one", responses=statuses)
        async def of_dependence(request: Request, model: str) -> Response:
            served = self.model(model)
            found = await self.ask(request, lambda: as_json(served.dependence))
            return Response(found, media_type=JSON)

    def _add_questions(self) -> None:
        app = self.app

        @app.post(
            f"{API}/conditionals",
            summary="The distribution of every column that is not given",
            openapi_extra=json_body(ConditionalsBody),
            responses=problems(),
        )
        async def conditionals(request: Request, model: str) -> Response:
            def work(served: Served, body: ConditionalsBody) -> Any:
                return served.conditionals(body.given, body.quantiles)

            return await self.about_json(request, model, ConditionalsBody, work)

        @app.post(
            f"{API}/probability",
            summary="The probability of a condition, given another",
            openapi_extra=json_body(ProbabilityBody),
            responses=problems(),
        )
        async def probability(request: Request, model: str) -> Response:
            def work(served: Served, body: ProbabilityBody) -> Any:
                self.check_samples(body.samples)
                return served.probability(body.question, body.samples, body.random_state)

            return await self.about_json(request, model, ProbabilityBody, work)

        @app.post(
            f"{API}/sample",
            summary="New rows",
            openapi_extra=json_body(SampleBody),
            responses=rows_answer(),
        )
        async def sample(request: Request, model: str) -> Response:
            def work(served: Served, body: SampleBody) -> Any:
                self.check_samples(body.count)
                return served.sample(body.count, body.given, body.temperature, body.random_state)

            return await self.about_json(request, model, SampleBody, work)

    def _add_rows(self) -> None:
        app, entries = self.app, {"type": "array", "items": {"type": "object", "additionalProperties": VALUE}}

        @app.post(f"{API}/score", summary="log p of rows", openapi_extra=rows_body(), responses=rows_answer())
        async def score(
            request: Request,
            model: str,
            given: Annotated[list[str], Query(description="Columns that are conditioned on.")] = [],  # noqa: B006
            absent: Absent = "error",
        ) -> Response:
            return await self.about_rows(request, model, lambda served, rows: served.score(rows, given), absent)

        @app.post(
            f"{API}/impute",
            summary="Rows with missing values filled in",
            openapi_extra=rows_body(),
            responses=rows_answer(filled=entries),
        )
        async def impute(
            request: Request,
            model: str,
            strategy: Literal["sample", "mode", "mean"] = "sample",
            uncertainty: Annotated[bool, Query(description="In JSON, describe each filled entry.")] = False,
            random_state: Seed = None,
            absent: Absent = "error",
        ) -> Response:
            def work(served: Served, rows: Any) -> Answer:
                return served.impute(rows, strategy, uncertainty, random_state)

            return await self.about_rows(request, model, work, absent)

        facts: dict[str, Any] = {"target": {"type": "string"}, "levels": {"type": "array", "items": {"type": "number"}}}

        @app.post(
            f"{API}/predict",
            summary="One column, given what is observed of the others",
            openapi_extra=rows_body(),
            responses=rows_answer(**facts),
        )
        async def predict(
            request: Request,
            model: str,
            target: Annotated[str | None, Query(description="The column. Default: the model's target.")] = None,
            quantiles: Annotated[list[Level], Query(max_length=100)] = [0.05, 0.5, 0.95],  # noqa: B006
            absent: Absent = "error",
        ) -> Response:
            def work(served: Served, rows: Any) -> Answer:
                return served.predict(rows, target, quantiles)

            return await self.about_rows(request, model, work, absent)

        numbers = {"type": "array", "items": NUMBER}
        usual = {"type": "object", "additionalProperties": NUMBER}

        @app.post(
            f"{API}/explain",
            summary="The surprise of each entry, in nats",
            openapi_extra=rows_body(),
            responses=rows_answer(log_prob=numbers, usual=usual),
        )
        async def explain(
            request: Request, model: str, random_state: Seed = None, absent: Absent = "error"
        ) -> Response:
            return await self.about_rows(
                request, model, lambda served, rows: served.explain(rows, random_state), absent
            )

        @app.post(
            f"{API}/denoise",
            summary="Rows as they were before some entries were corrupted",
            openapi_extra=rows_body(),
            responses=rows_answer(changed=entries, method={"type": "string"}),
        )
        async def denoise(
            request: Request,
            model: str,
            error: Annotated[float, Query(ge=0, lt=1, description="Probability that an entry is wrong.")] = 0.05,
            strategy: Literal["mode", "mean"] = "mode",
            random_state: Seed = None,
            absent: Absent = "error",
        ) -> Response:
            def work(served: Served, rows: Any) -> Answer:
                return served.denoise(rows, error, strategy, random_state)

            return await self.about_rows(request, model, work, absent)


def _counted(unseen: UnseenWarning | None) -> dict[str, dict[str, int]]:
    """How many values of each column training never saw, and how many are taken for the nearest step."""
    if unseen is None:
        return {}
    rounded = {name: count for name, count in unseen.rounded.items() if count}
    never = {name: count - rounded.get(name, 0) for name, count in unseen.counts.items()}
    counted = {"unseen": {name: count for name, count in never.items() if count}, "rounded": rounded}
    return {kind: counts for kind, counts in counted.items() if counts}


def _file(request: Request, files: dict[str, bytes], name: str) -> Response:
    if name not in files:
        raise Problem("not-found", "there is no such file.")
    tag = f'"{hashlib.sha256(files[name]).hexdigest()[:16]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(files[name], headers=headers, media_type=TYPES[Path(name).suffix])


async def _malformed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = [{"place": list(each["loc"]), "message": each["msg"]} for each in error.errors()[:10]]
    where = ".".join(map(str, found[0]["place"]))
    return Problem("request", f"{where}: {found[0]['message']}.", errors=found).response()


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return error.response()


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = {404: "not-found", 405: "method"}.get(error.status_code, "request")
    return Problem(kind, f"{request.method} {request.url.path[:200]}: {error.detail}.").response(error.headers)
