"""How long the page of `made serve` takes, in a real browser: to load, and from a changed control to the redrawn page.

    python -m benchmarks.serve_page MODEL

The server is a process of its own at a free port of 127.0.0.1, and is stopped at the end. Needs chromium, playwright.
Milliseconds are those of the clock, and those that the processor worked, in the server and in the main thread of the
page, which do not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

CHANGES = 60
FIRST = "() => performance.getEntriesByName('made:redraw').map(each => each.startTime + each.duration)[0]"
REDRAWS = "() => performance.getEntriesByName('made:redraw').map(each => each.duration)"


class Processor:
    """How long the processor has worked, in the server and in the main thread of a page."""

    def __init__(self, page: Page, server: int) -> None:
        self.stat = Path(f"/proc/{server}/stat")
        self.session = page.context.new_cdp_session(page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def milliseconds(self) -> tuple[float, float]:
        """In the server, and in the page."""
        fields = self.stat.read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        metrics = {each["name"]: each["value"] for each in self.session.send("Performance.getMetrics")["metrics"]}
        return 1000 * ticks / os.sysconf("SC_CLK_TCK"), 1000 * metrics["TaskDuration"]


def measure(page: Page, address: str, server: int) -> dict[str, float]:
    """Milliseconds: to the first drawing, and of each change."""
    processor = Processor(page, server)
    start = processor.milliseconds()
    page.goto(address)
    page.wait_for_selector("main[data-ready]")
    page.wait_for_timeout(1000)
    loaded = processor.milliseconds()
    first = page.evaluate(FIRST)
    values = page.locator("button.value")
    count = values.count()
    page.evaluate("() => performance.clearMeasures()")
    before = processor.milliseconds()
    for number in range(CHANGES):
        values.nth(7 * number % count).click()
        page.wait_for_function("count => performance.getEntriesByName('made:redraw').length > count", arg=number)
    after = processor.milliseconds()
    found = sorted(page.evaluate(REDRAWS))
    return {
        "first_drawing_ms": round(first),
        "first_drawing_processor_ms": round(sum(loaded) - sum(start)),
        "changes": len(found),
        "median_ms": round(statistics.median(found)),
        "p95_ms": round(found[int(0.95 * (len(found) - 1))]),
        "most_ms": round(found[-1]),
        "processor_ms_of_the_server": round((after[0] - before[0]) / CHANGES),
        "processor_ms_of_the_page": round((after[1] - before[1]) / CHANGES),
    }


def main() -> None:
    """Run and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    given = parser.parse_args()
    command = [sys.executable, "-m", "made", "serve", str(given.model), "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        content = ""
        while not content.rstrip().endswith("}"):
            content += process.stdout.readline()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            print(json.dumps(measure(page, json.loads(content)["url"], process.pid), indent=2))
            browser.close()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


if __name__ == "__main__":
    main()
