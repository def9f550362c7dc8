"""`made mcp`: a server of the Model Context Protocol, by which assistants query a model."""

from __future__ import annotations

from typing import Annotated

from made.cli.errors import command
from made.cli.inputs import load
from made.cli.options import MASKS, MODEL, SEED, option


@command
def mcp(
    folder: MODEL,
    name: Annotated[str | None, option("Name of the table, for the assistant.", "the folder's name")] = None,
    masks: MASKS = None,
    seed: SEED = None,
) -> None:
    """Let an assistant query a model, via the Model Context Protocol on standard input and output.

    The assistant gets tools (info, ask, predict, sample, impute, explain, score) and the model's card; it never sees
    the table. It starts this command itself, from its configuration: {"mcpServers": {"churn": {"command": "made",
    "args": ["mcp", "/path/to/model"]}}}. The server ends when its standard input does.
    """
    model = load(folder, masks, seed=seed)

    from made.serve.mcp import serve

    serve(model, name or folder.resolve().name)
