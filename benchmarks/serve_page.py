"""How long the page of `made serve` takes, in a real browser: to load, and from a changed control to the redrawn page.

    python -m benchmarks.serve_page MODEL

The server is a process of its own at a free port of 127.0.0.1, and is stopped at the end. Needs chromium, playwright.
"""

from __future__ import annotations

import argparse
import json
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


def measure(page: Page, address: str) -> dict[str, float]:
    """Milliseconds: to the first drawing, and of each change."""
    page.goto(address)
    page.wait_for_selector("main[data-ready]")
    page.wait_for_timeout(1000)
    first = page.evaluate(FIRST)
    values = page.locator("button.value")
    count = values.count()
    page.evaluate("() => performance.clearMeasures()")
    for number in range(CHANGES):
        values.nth(7 * number % count).click()
        page.wait_for_timeout(300)
    found = sorted(page.evaluate(REDRAWS))
    return {
        "first_drawing_ms": round(first),
        "changes": len(found),
        "median_ms": round(statistics.median(found)),
        "p95_ms": round(found[int(0.95 * (len(found) - 1))]),
        "most_ms": round(found[-1]),
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
            print(json.dumps(measure(page, json.loads(content)["url"]), indent=2))
            browser.close()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


if __name__ == "__main__":
    main()
