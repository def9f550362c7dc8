"""`made serve`: a page and an HTTP API to explore models."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

from typer import Argument

from made.cli.errors import command, usage
from made.cli.inputs import load
from made.cli.options import option
from made.cli.printing import mode, note, print_json
from made.errors import ParameterError, QuestionError

LONGEST_TOKEN = 4096


@command
def serve(
    folders: Annotated[
        list[Path], Argument(metavar="MODEL", help="Folders of models; each is served under its folder's name.")
    ],
    host: Annotated[str, option("Address to listen on; any other than loopback needs --token-file.")] = "127.0.0.1",
    port: Annotated[int, option("Port; 0 for any that is free.", min=0, max=65535)] = 8000,
    token_file: Annotated[
        Path | None, option("File with a token that clients must send as 'Authorization: Bearer TOKEN'.", "none")
    ] = None,
    allow_host: Annotated[
        list[str] | None, option("Another name of the server to accept in the Host header; may be repeated.", "none")
    ] = None,
    max_body: Annotated[int, option("Maximum size of the body of a request, in bytes.", min=1)] = 8 << 20,
    max_rows: Annotated[int, option("Maximum number of rows in a request.", min=1)] = 10_000,
    max_samples: Annotated[
        int, option("Maximum number of rows to draw, or of sample paths, in a request.", min=1)
    ] = 100_000,
    max_waiting: Annotated[int, option("Maximum number of requests that wait while one is computed.", min=1)] = 64,
    max_seconds: Annotated[float, option("Maximum time for a request, in seconds.", min=0.1)] = 30.0,
    max_connections: Annotated[int, option("Maximum number of open connections.", min=1)] = 1024,
) -> None:
    """Serve a page and an HTTP API to explore models, until Ctrl-C or SIGTERM.

    The page shows how the distribution of every column changes when others are fixed, answers questions, finds odd
    rows, and describes the model. The API answers the same queries; its schema is /openapi.json. Models are read once:
    one that is replaced on disk is served after a restart.
    """
    try:
        from made.serve.app import create_app
        from made.serve.bounds import Bounds
        from made.serve.operations import Served
        from made.serve.run import listen, run
        from made.serve.security import Guard, is_loopback
    except ImportError as error:
        raise ImportError(f"'made serve' needs {error.name}: pip install 'made[serve]'") from None
    token = None if token_file is None else _token(token_file)
    if token is None and not is_loopback(host):
        raise usage(f"'--host {host}' lets other machines ask: give a '--token-file', or listen on 127.0.0.1.")
    names = [folder.resolve().name for folder in folders]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise usage(f"two models are called {twice!r}: rename one of their folders.")
    bounds = Bounds(max_body, max_rows, max_samples, max_waiting, max_seconds, max_connections)
    models = [Served(name, load(folder), str(folder)) for name, folder in zip(names, folders, strict=True)]
    app = create_app(models, bounds, Guard(host, allow_host or (), token))
    for each in models:
        with suppress(QuestionError):  # a model of fixed orderings does not answer every question
            each.warm()
    with listen(host, port) as listener:
        bound = listener.getsockname()[1]
        url = f"http://{f'[{host}]' if ':' in host else host}:{bound}/"
        if mode.json:
            print_json({"url": url, "models": names})
        note(f"Serving {', '.join(names)} at {url} (Ctrl-C stops).")
        run(app, listener, bounds)


def _token(path: Path) -> str:
    """The token in a file, without white space around it."""
    with path.open("rb") as file:
        content = file.read(LONGEST_TOKEN + 1)
    try:
        token = content.decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if not 16 <= len(token) <= LONGEST_TOKEN or not token.isprintable() or " " in token:
        raise ParameterError(
            f"'--token-file' {str(path)!r} should hold one token of at least 16 ASCII characters without spaces, such "
            "as the output of 'openssl rand -hex 32'."
        )
    return token
