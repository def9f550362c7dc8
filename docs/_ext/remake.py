"""Remake what pages show of a model of the penguins: answers in console blocks and of tools, and the pictures.

    python docs/_ext/remake.py            all of it
    python docs/_ext/remake.py README.md  the blocks of a page only

The model is that of `made fit penguins --seed 0`, by the code of this folder. Pictures take chromium and playwright.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (
    ROOT / "README.md",
    DOCS / "serve.md",
    DOCS / "sql.md",
    DOCS / "mcp.md",
    DOCS / "questions.md",
    DOCS / "report.md",
)
NEW = """species,island,bill_length_mm,bill_depth_mm,flipper_length_mm,body_mass_g,sex
Adelie,Torgersen,39.1,18.7,181,3750,male
Gentoo,,46.5,14.8,217,4700,
,Dream,49.6,18.2,193,,male
Gentoo,Biscoe,46.0,19.0,185,3300,female
"""
WIDTH = 110
BLOCK = re.compile(r"(?<=```console\n)(.*?)(?=```)", flags=re.S)
CALLS = re.compile(
    r'```(?:json|text)\n(\{"name": "(\w+)", "arguments": (.*?)\})\n\n(.*?)\n```',
    flags=re.S,
)
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
ENVIRONMENT = os.environ | {
    "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "OMP_NUM_THREADS": "1",
    "COLUMNS": "80",
}


def run(command: str, folder: Path) -> str:
    """What a command prints; a query of SQL on a terminal, where it is a table."""
    if not command.startswith("made sql") or "--out" in command:
        done = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            env=ENVIRONMENT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return done.stdout
    mine, theirs = pty.openpty()
    wide = ENVIRONMENT | {"COLUMNS": str(WIDTH), "TERM": "xterm"}
    process = subprocess.Popen(
        command, shell=True, cwd=folder, env=wide, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    printed = b""
    try:
        while part := os.read(mine, 65536):
            printed += part
    except OSError:  # the other side is closed
        pass
    process.wait()
    os.close(mine)
    return printed.decode().replace("\r\n", "\n")


def block(text: str, folder: Path) -> str:
    """A block of commands with what they print now. One that serves, or fits what is there, stays as it is."""
    commands = re.findall(r"^\$ (.*(?:\\\n.*)*)", text, flags=re.M)
    runs = ("made ask", "made explain", "made impute", "made predict", "made report")
    if not any(each.startswith((*runs, "made sql")) for each in commands):
        return text
    if any("MODEL" in each for each in commands):  # a model of another table
        return text
    lines: list[str] = []
    for part in re.split(r"^(?=\$ )", text, flags=re.M)[1:]:
        command = re.findall(r"^\$ (.*(?:\\\n.*)*)", part)[0]
        if command.startswith("made fit"):  # the model is there
            lines += part.rstrip().splitlines()
            continue
        plain = ANSI.sub("", run(command, folder)).rstrip()
        if command.startswith("made report"):
            plain = wrapped(plain, 120)
        lines += [f"$ {command}", *(line.rstrip() for line in plain.splitlines())]
        if command.startswith("made sql") and "--out" not in command:
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


@contextmanager
def assistant(folder: Path) -> Iterator[Any]:
    """A function that calls a tool of `made mcp` by the client of the SDK."""
    sys.path.insert(0, str(ROOT / "src"))
    import anyio
    from mcp import Client

    from made import Model
    from made.serve.mcp import create_server

    server = create_server(Model.load(folder), folder.name)

    def call(tool: str, arguments: dict[str, Any]) -> str:
        async def ask() -> Any:
            async with Client(server) as client:
                return await client.call_tool(tool, arguments)

        return str(anyio.run(ask).content[0].text)

    yield call


def wrapped(text: str, width: int = 118) -> str:
    """A document of JSON, or a message, in lines; a document is cut between its members only."""
    if not text.startswith("{"):
        return "\n".join(
            textwrap.fill(each, width) if each.strip() else each
            for each in text.splitlines()
        )
    lines = [""]
    for part in re.split(r"(?<=,) (?=[\"{\[])", text):
        line = f"{lines[-1]} {part}" if lines[-1] else part
        if len(line) <= width:
            lines[-1] = line
        else:
            lines.append(f"  {part}")
    return "\n".join(lines)


def answers(path: Path, folder: Path) -> None:
    """Rewrite the blocks of a page."""
    text = BLOCK.sub(lambda found: block(found[0], folder), path.read_text())
    if CALLS.search(text):
        with assistant(folder / "penguins") as call:

            def again(found: re.Match[str]) -> str:
                answer = wrapped(call(found[2], json.loads(found[3])))
                return f"{found[0].splitlines()[0]}\n{found[1]}\n\n{answer}\n```"

            text = CALLS.sub(again, text)
    path.write_text(text)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of the model."""
    command = [
        sys.executable,
        "-m",
        "made",
        "serve",
        "penguins",
        "--port",
        "0",
        "--json",
    ]
    process = subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        content = ""
        while not content.rstrip().endswith("}"):
            content += process.stdout.readline()
        yield json.loads(content)["url"]
    finally:
        process.terminate()
        process.wait()


TERMINAL = """<!DOCTYPE html><meta charset="utf-8"><style>
body { margin: 0; background: #fff; }
main { display: inline-block; background: #16191f; color: #dfe3e8; padding: 18px 24px 20px; }
pre { margin: 0; font: 14px/1.45 "DejaVu Sans Mono", monospace; white-space: pre; }
pre + pre { margin-top: 14px; } b { color: #8cc2f0; font-weight: 400; } i { color: #9aa3ae; font-style: normal; }
</style><main>"""


def terminal(page: Any, parts: list[tuple[str, str]], out: Path) -> None:
    """A picture of commands and what they print."""
    from markupsafe import escape

    body = "".join(
        f"<pre><i>$ </i><b>{escape(command)}</b>\n{escape(printed)}</pre>"
        for command, printed in parts
    )
    page.goto("about:blank")  # that of the server allows no styles in the page itself
    page.set_content(f"{TERMINAL}{body}</main>")
    page.locator("main").screenshot(path=out)


def exchange(
    page: Any, calls: list[tuple[str, dict[str, Any], str]], out: Path
) -> None:
    """A picture of calls of tools and their answers."""
    from markupsafe import escape

    body = ""
    for tool, arguments, answer in calls:
        asked = wrapped(json.dumps(arguments), 96)
        body += f"<pre><b>{tool}</b> {escape(asked)}\n<i>{escape(wrapped(answer, 96))}</i></pre>"
    page.set_content(f"{TERMINAL}{body}</main>")
    page.locator("main").screenshot(path=out)


def pictures(folder: Path) -> None:
    """Pictures of the page, of the API and SQL in a terminal, and of calls of tools."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    (folder / "new.csv").write_text(NEW)
    with served(folder) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1240, "height": 700})
        page.set_default_timeout(60_000)
        question = "q=bill_length_mm+>+45+and+body_mass_g+>+4500+|+island+%3D+'Biscoe'"
        views = {
            "serve": "what-if?island=Biscoe&flipper_length_mm=215",
            "serve-ask": f"ask?{question}",
            "serve-rows": "rows",
            "serve-model": "model",
        }
        for name, view in views.items():
            page.goto("about:blank")
            page.goto(f"{url}#penguins/{view}")
            page.wait_for_selector("main[data-ready]")
            if name == "serve-rows":
                page.set_input_files("#file", folder / "new.csv")
                page.wait_for_selector("tbody tr")
                page.get_by_label("Predict").select_option("species")
                page.wait_for_selector("text=predicted species")
            if name == "serve-ask":
                page.wait_for_selector(".answer")
            if name == "serve-model":
                page.wait_for_selector(".heat")
            page.wait_for_timeout(500)
            bottom = page.evaluate(
                "() => document.querySelector('main > div').getBoundingClientRect().bottom"
            )
            clip = {"x": 0, "y": 0, "width": 1240, "height": min(bottom + 20, 780)}
            page.set_viewport_size({"width": 1240, "height": int(clip["height"])})
            page.screenshot(path=DOCS / f"{name}.png", clip=clip)
            page.set_viewport_size({"width": 1240, "height": 700})
        terminal(page, list(curls(folder, url)), DOCS / "serve-api.png")
        terminal(page, list(queries(folder)), DOCS / "sql.png")
        report(browser, folder / "apart")
        browser.close()
    with assistant(folder / "penguins") as call, sync_playwright() as playwright:
        asked = [
            ("ask", {"questions": ["body_mass_g > 5000 | species = 'Gentoo'"]}),
            (
                "predict",
                {
                    "rows": [{"species": "Gentoo", "sex": "female"}],
                    "target": "body_mass_g",
                },
            ),
            ("ask", {"questions": ["body_mass > 5000 | species = 'Gentoo'"]}),
        ]
        found: list[tuple[str, dict[str, Any], str]] = []
        thread = threading.Thread(  # playwright has an event loop in this one
            target=lambda: found.extend((*each, call(*each)) for each in asked)
        )
        thread.start()
        thread.join()
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        exchange(browser.new_page(), found, DOCS / "mcp.png")
        browser.close()
    for name in (*views, "serve-api", "sql", "report", "mcp"):
        picture = Image.open(DOCS / f"{name}.png").convert("RGB")
        picture.quantize(128).save(DOCS / f"{name}.png", optimize=True)


def report(browser: Any, folder: Path) -> None:
    """A picture of the upper part of a report."""
    run("made report model penguins --out report.html", folder)
    page = browser.new_page(viewport={"width": 1200, "height": 1640})
    page.goto((folder / "report.html").as_uri())
    page.screenshot(path=DOCS / "report.png")


def curls(folder: Path, url: str) -> Iterator[tuple[str, str]]:
    """Requests to the API, and the answers."""
    path = "localhost:8000/api/models/penguins"
    json_body = "-H 'Content-Type: application/json'"
    for command in (
        f"curl {path}/score -H 'Content-Type: text/csv' -H 'Accept: text/csv' --data-binary @new.csv",
        f'curl {path}/probability {json_body} -d \'{{"question": "sex = male | body_mass_g > 4500"}}\'',
        f'curl {path}/score {json_body} -d \'{{"rows": [{{"island": "Dream"}}, {{"body_mass_g": "much"}}]}}\'',
    ):
        answer = run(
            command.replace("localhost:8000/", url).replace("curl", "curl -s"), folder
        )
        yield (
            command,
            wrapped(answer.strip(), 110) if answer.startswith("{") else answer.rstrip(),
        )


def queries(folder: Path) -> Iterator[tuple[str, str]]:
    """Queries of SQL, and the answers."""
    for query in (
        "SELECT *, penguins_logp(t) AS logp FROM 'new.csv' t ORDER BY logp LIMIT 20",
        "SELECT penguins_probability('sex = \"male\" | body_mass_g > 4500') AS p",
        "SELECT species, count(*), avg(body_mass_g) FROM penguins_sample(1000) GROUP BY ALL ORDER BY ALL",
    ):
        escaped = query.replace('"', '\\"')
        command = f'made sql penguins "{escaped}"'
        yield command, ANSI.sub("", run(command, folder)).rstrip()


def main() -> None:
    chosen = [Path(each).resolve() for each in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "new.csv").write_text(NEW)
        print(run("made fit penguins --out penguins --seed 0", folder))
        # Pages on which `penguins` is the dataset call the model `model`, and have no file or folder `penguins`.
        apart = folder / "apart"
        shutil.copytree(folder / "penguins", apart / "model")
        shutil.copy(folder / "new.csv", apart)
        for path in chosen or PAGES:
            answers(
                path,
                apart
                if re.search(r"^\$ made \w+ model\b", path.read_text(), flags=re.M)
                else folder,
            )
        if not chosen:
            pictures(folder)


if __name__ == "__main__":
    main()
