"""The Poisson kind of docs/columns.md, executed from the page itself so that the page cannot rot."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "columns.md"


def code() -> str:
    """The first code block of the page."""
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]


@cache
def poisson() -> Any:
    """The class that the page defines, as a module of the user's own would."""
    module = sys.modules["poisson_of_the_page"] = ModuleType("poisson_of_the_page")
    exec(compile(code(), str(PAGE), "exec"), module.__dict__)
    return module.__dict__["Poisson"]
