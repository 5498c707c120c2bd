"""Sphinx: the reference of the Python package. `scripts/python-reference` runs it."""

import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "src"))
with open(os.path.join(ROOT, "pyproject.toml"), encoding="utf-8") as file:
    PROJECT = file.read()


def field(name):
    return re.search(rf'(?m)^{name} = "(.+)"', PROJECT).group(1)


project = "Amber in Python"
version = release = field("version")
copyright = "the Amber developers"
html_theme = "alabaster"
html_theme_options = {"description": "Clients and drivers for robots", "page_width": "1100px"}
html_show_copyright = html_show_sphinx = html_show_sourcelink = html_copy_source = False
html_sidebars = {"**": ["about.html", "searchfield.html", "navigation.html"]}

extensions = ["sphinx.ext.autodoc", "sphinx.ext.extlinks"]
extlinks = {"repository": (field("Homepage") + "/blob/HEAD/%s", "%s")}
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
# A link that leads nowhere is an error. Types in signatures have short names, some of them twice.
nitpicky = True
nitpick_ignore_regex = [
    ("py:class", r"(?!amber\.).*"),
    ("py:(class|obj)", r"amber\.(interface|frame)\..*|amber\..*\.(T|Self|SelfPlain|Devices|_.*)"),
]
suppress_warnings = ["ref.python"]
