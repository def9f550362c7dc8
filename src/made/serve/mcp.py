"""A server of the Model Context Protocol: an assistant queries a model by tools, and reads its card."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from contextvars import copy_context
from typing import Any

import anyio
import pyarrow as pa

from made._version import __version__
from made.errors import MadeError, QuestionError
from made.model.card import card
from made.model.model import Model

try:
    import mcp_types as types
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
    from mcp.shared.exceptions import MCPError

    from made.serve.answers import plain
    from made.serve.arguments import check
    from made.serve.assistant import Assistant
    from made.serve.operations import with_unseen
    from made.serve.tools import instructions, tools_of
except ModuleNotFoundError as error:
    if error.name not in ("mcp", "mcp_types", "jsonschema"):
        raise
    raise ImportError("this server needs a package: pip install 'made[mcp]'.") from None

__all__ = ["create_server", "serve"]

CARD = "made://card"


def create_server(model: Model, name: str = "model") -> Server[Any]:
    """A server of one model.

    Tools: info, ask, predict, sample, impute, explain and score (:mod:`made.serve.tools`). Resource: the model's card.
    What is wrong with a call is an answer marked as an error, whose text has the remedy.

    Arguments:
        model: the model.
        name: what people call it; part of what an assistant is told.

    Example:
        >>> import anyio, numpy as np
        >>> from made import MADE
        >>> from mcp import Client
        >>> rows = np.random.default_rng(0).integers(0, 2, (100, 2))
        >>> server = create_server(MADE(hidden_sizes=(4,), max_epochs=1).fit(rows).model_)
        >>> async def tools():
        ...     async with Client(server) as client:
        ...         return [tool.name for tool in (await client.list_tools()).tools]
        >>> anyio.run(tools)
        ['info', 'ask', 'predict', 'sample', 'impute', 'explain', 'score']
    """
    assistant = Assistant(model, name)
    tools = tools_of(assistant)
    one = anyio.CapacityLimiter(1)  # one query at a time: a pass takes all cores
    text = card(model.config.to_json(), model.schema, model.history)
    hints = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

    def answer(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if tool not in tools:
            raise QuestionError(f"there is no tool {tool!r}: the tools are {', '.join(tools)}.")
        check(arguments, tools[tool].arguments, assistant.names, tools[tool].example)
        # In JSON, 5.0 is an integer; no tool has another number as an argument.
        whole = {name: int(each) if isinstance(each, float) else each for name, each in arguments.items()}
        found, unseen = with_unseen(lambda: tools[tool].run(**whole))
        answered: dict[str, Any] = plain(found | ({"warnings": [str(unseen)]} if unseen else {}))
        return answered

    async def list_tools(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=each,
                    title=tool.title,
                    description=tool.description,
                    input_schema=tool.arguments,
                    output_schema=tool.answer,
                    annotations=hints,
                )
                for each, tool in tools.items()
            ]
        )

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        try:
            found = await anyio.to_thread.run_sync(answer, params.name, params.arguments or {}, limiter=one)
        except (MadeError, ValueError, TypeError, pa.ArrowException) as error:
            return types.CallToolResult(content=[types.TextContent(text=f"Error: {error}")], is_error=True)
        content = [types.TextContent(text=json.dumps(found, ensure_ascii=False))]
        return types.CallToolResult(content=list(content), structured_content=found)

    async def list_resources(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        about = "What the model is: its data, columns, training and scores."
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=CARD, name="card", title="Model card", description=about, mime_type="text/markdown")
            ]
        )

    async def read_resource(
        context: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        if str(params.uri) != CARD:
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {str(params.uri)!r}: the only one is {CARD}.")
        contents = types.TextResourceContents(uri=CARD, mime_type="text/markdown", text=text)
        return types.ReadResourceResult(contents=[contents])

    return Server(
        "made",
        version=__version__,
        instructions=instructions(assistant),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )


def serve(model: Model, name: str = "model") -> None:
    """Serve a model on standard input and output, until the input ends, or a signal raises an exception here."""
    server = create_server(model, name)
    failed: list[BaseException] = []

    async def run() -> None:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    def work() -> None:
        try:
            anyio.run(run)
        except BaseException as error:
            failed.append(error)

    # The thread that waits for input cannot be interrupted. It is a daemon, as this one is, and ends with the process.
    thread = threading.Thread(target=copy_context().run, args=(work,), daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
