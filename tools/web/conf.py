"""How Sphinx builds the site: a book of the chapters as they are stored, nothing run, nothing asked of another host."""

import os

project = "Positional encodings"
author = "posviz"
html_title = "Positional encodings"
root_doc = "index"
extensions = ["myst_nb", "live_pages"]  # the second is ours: tools/live_pages.py
exclude_patterns = ["README.md"]  # index.md takes a part of it

nb_execution_mode = "off"
nb_ipywidgets_js = {}  # no widget is stored, so no script for widgets is asked of another host
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
myst_heading_slug_func = "live_pages.slug"
html_math_renderer = "mathml"  # formulas are in the page, so no script is needed to read them

html_theme = "sphinx_book_theme"
html_static_path = ["live.css", "live.js"]
html_css_files = ["live.css"]
html_js_files = [("live.js", {"defer": "defer"})]
html_context = {"default_mode": "auto"}
html_use_index = False
html_sidebars = {"**": ["search-button-field.html", "sbt-sidebar-nav.html"]}  # the title is the first page of the list
html_copy_source = True  # what the download button gives
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {"show_toc_level": 2, "home_page_in_toc": True, "show_navbar_depth": 1, "navbar_persistent": []}

# Where this course lives, such as https://github.com/NAME/posviz: then each chapter has buttons for Binder and Colab.
if address := os.environ.get("POSVIZ_REPOSITORY"):
    html_theme_options |= {
        "repository_url": address,
        "repository_branch": os.environ.get("POSVIZ_BRANCH", "main"),
        "use_repository_button": True,
        "launch_buttons": {
            "binderhub_url": "https://mybinder.org",
            "colab_url": "https://colab.research.google.com",
            "notebook_interface": "jupyterlab",
        },
    }
