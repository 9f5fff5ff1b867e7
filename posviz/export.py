"""What nbconvert needs to export a chapter's pictures with their alternative texts, which its own pages leave out."""

import html
import re
from pathlib import PurePath
from urllib.parse import quote

WIDGET = "application/vnd.jupyter.widget-view+json"


def is_picture(output):
    """Whether an output is a picture of posviz: a PNG with an alternative text, and "posviz" in its metadata."""
    about, data = output.get("metadata", {}), output.get("data", {})
    return "posviz" in about and "image/png" in data and bool(about.get("image/png", {}).get("alt"))


def alternative_text(notebook, resources):
    """An nbconvert preprocessor that gives each picture of posviz its alternative text in HTML and Markdown.

    Nothing else changes. Its live widget is dropped: in a page it would need scripts from another host.

    JupyterLab's "Save and Export" runs it wherever posviz is installed (posviz.server), `jupyter nbconvert` in the
    environment that `make` sets up, and elsewhere with --HTMLExporter.preprocessors=posviz.export.alternative_text.
    """
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if is_picture(output):
                about, data = output["metadata"], output["data"]
                alt = about["image/png"]["alt"]
                file = about.get("filenames", {}).get("image/png")  # where the exporter put it, if it did
                source = quote(PurePath(file).as_posix()) if file else f"data:image/png;base64,{data['image/png']}"
                data.pop(WIDGET, None)
                if resources["output_extension"] == ".md":
                    words = re.sub(r"([\\\[\]])", r"\\\1", alt)
                    data["text/markdown"] = f"![{words}]({source})"
                else:
                    data["text/html"] = f'<img src="{source}" alt="{html.escape(alt)}">'
    return notebook, resources
