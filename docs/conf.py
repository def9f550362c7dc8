"""The site: `make docs` builds it into build/docs. Warnings are errors."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "docs" / "_ext"), str(ROOT / "src")]
# Commands on pages run the code of this folder, in one thread: small networks gain nothing from more.
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["MADE_ROOT"] = str(ROOT)

from generated import link_to_source as linkcode_resolve  # noqa: E402, F401

from made import __version__ as release  # noqa: E402

project = "made"
version = release
author = "the authors of made"
project_copyright = ""

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.linkcode",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "pages",
    "generated",
    "mathml",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_*"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 4
smartquotes = False  # options start with two hyphens

# The pages whose blocks are executed, every one.
run_pages = [
    "start",
    "concepts",
    "engine",
    "scikit-learn",
    "onnx",
    "which-tool",
    "tutorials/*",
    "notebooks/*",
]
# Pages on which figures matter more than the code that reads them.
fold_pages = ["which-tool"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
napoleon_use_ivar = True
napoleon_custom_sections = [("Arguments", "params_style")]

html_theme = "furo"
html_math_renderer = "mathml"
html_title = "made"
html_static_path = ["_static"]
html_css_files = ["made.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos"
