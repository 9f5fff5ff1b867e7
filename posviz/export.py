"""What nbconvert needs to export a chapter's pictures with their alternative texts, which its own pages leave out."""

import html
import re


def alternative_text(notebook, resources):
    """An nbconvert preprocessor that gives every stored picture its alternative text in HTML and Markdown.

    jupyter-config/jupyter_config.json names this function. It is installed with posviz, so that plain `jupyter nbconvert`
    and JupyterLab's "Save and Export" find it. Outputs without such a text stay as they are. The live widget is dropped:
    in a page it would need scripts from another host.
    """
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            alt = output.get("metadata", {}).get("image/png", {}).get("alt")
            if alt:
                file = output.metadata.get("filenames", {}).get("image/png")  # where the exporter put it, if it did
                output.data.pop("application/vnd.jupyter.widget-view+json", None)
                source = file or f"data:image/png;base64,{output.data['image/png']}"
                if resources["output_extension"] == ".md":
                    words = re.sub(r"([\\\[\]])", r"\\\1", alt)
                    output.data["text/markdown"] = f"![{words}]({source})"
                else:
                    output.data["text/html"] = f'<img src="{source}" alt="{html.escape(alt)}">'
    return notebook, resources
