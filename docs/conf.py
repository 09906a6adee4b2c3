"""Sphinx: `make docs` writes the site to docs/_build/html, with every warning an error."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for tools; an installed kwire, which is compiled, is first

from kwire.version import __version__

project = "kwire"
author = "The kwire maintainers"
copyright = "2026, the kwire maintainers. Kafka is a trademark of the Apache Software Foundation"
release = version = __version__

extensions = ["myst_parser", "sphinx_copybutton", "tools.docs.site"]
exclude_patterns = ["_build"]
nitpicky = False
suppress_warnings = ["ref.python"]  # Message is a class of kwire and one of kwire.schema

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"
copybutton_here_doc_delimiter = "EOF"

html_theme = "furo"
html_title = f"kwire {release}"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["kwire.css"]
html_show_sphinx = False
html_last_updated_fmt = None
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b57a4", "color-brand-content": "#0b57a4", "color-code-background": "#f3f5f7",
    },
    "dark_css_variables": {"color-brand-primary": "#7ab7ff", "color-brand-content": "#7ab7ff"},
}
toc_object_entries_show_parents = "hide"
