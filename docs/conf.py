"""Settings of the site for Sphinx. docs/build.py gathers the pages and builds them."""

import re
from importlib.util import find_spec
from pathlib import Path

import guardband

project = "guardband"
author = "The guardband developers"
copyright = author
release = version = guardband.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
]
templates_path = ["_templates"]
smartquotes = False  # "conf-nn" is to be typed as it stands

# Markdown. Links to headings work as on a code host; a dollar before a digit is money.
myst_enable_extensions = [
    "amsmath",
    "attrs_block",
    "attrs_inline",
    "colon_fence",
    "deflist",
    "dollarmath",
    "html_image",
]
myst_heading_anchors = 4
myst_dmath_allow_digits = False
myst_dmath_allow_space = False

# Tutorials: whether they run is said by docs/build.py.
nb_execution_mode = "off"
nb_execution_in_temp = True
nb_execution_show_tb = True
nb_execution_timeout = 600
nb_merge_streams = True
nb_ipywidgets_js = {}  # they would come from another host

# The API, from docstrings.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
_NOT_FOR_USERS = [
    *("from_dict", "get_extra_state", "set_extra_state", "extra_repr", "made_by", "settings", "outputs", "belonging"),
    *("mixer", "is_quick", "restored", "on_its_device", "meaning", "fit_table", "fitted_"),
    *("placed_of", "need_places", "places"),
    *("target_", "read_rows", "intervals_of", "get_params", "set_params", "get_metadata_routing"),
    *("set_fit_request", "set_predict_request", "set_score_request"),
]
autodoc_default_options = {"exclude-members": ", ".join(_NOT_FOR_USERS)}
numpydoc_show_class_members = False
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

# Formulas, by one file that needs no font and no other host.
_MATHJAX = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax"
mathjax_path = "tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}}

html_theme = "pydata_sphinx_theme"
html_title = "guardband"
html_static_path = ["_static", str(_MATHJAX / mathjax_path)]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # a summary is fetched, which a page opened from a folder must not do
html_theme_options = {
    "logo": {"text": "guardband", "image_light": "_static/logo.svg", "image_dark": "_static/logo-dark.svg"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "search": []},
    "footer_start": ["version"],
    "footer_end": [],
}
html_sidebars = {"index": []}
html_context = {"default_mode": "auto"}


def plain_bars(app, what, name, thing, options, lines):  # type: ignore[no-untyped-def]
    """Let ``|y - m|`` in a docstring be an absolute value: to Sphinx it would be the name of a text to insert."""
    lines[:] = [re.sub(r"(``.*?``)|\|", lambda found: found.group(1) or r"\|", line) for line in lines]


def setup(app):  # type: ignore[no-untyped-def]
    """Read docstrings as they are meant."""
    app.connect("autodoc-process-docstring", plain_bars)
