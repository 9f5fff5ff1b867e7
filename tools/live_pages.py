"""The live pictures of the site, as an extension of Sphinx; its script is web/live.js, its frames come from frames.py.

A stored picture whose output names its view becomes a figure with the controls that carry its story. Everything else is
Sphinx's and myst-nb's, but for three small things: formulas become MathML when a page is built, each cell that shows a
claim of the source document gets a place to link to, and the teacher's notes stay out.
"""

import json
import re
from pathlib import Path

from docutils.nodes import SkipNode

import frames
import pages

WIDE = 24  # signs of a formula in a line of text that a phone may be too narrow for
SUMMARY, FORMULA = re.compile(r"<summary>.*?</summary>"), re.compile(r"\$(.+?)\$")  # HTML, where MyST reads no formula
CLAIM = re.compile(r"\| (claim-[a-z0-9.-]+) \|")


def setup(app):
    app.add_config_value("live_chapters", [], "env")
    app.add_config_value("live_frames", "", "env")
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("builder-inited", _draw)
    app.connect("source-read", _read)
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def slug(title):
    """The id that JupyterLab gives to a heading, so that a link inside a chapter works in both."""
    return re.sub(r"\s", "-", title.strip())


def _draw(app):
    """Draw the frames of all live pictures; app.live is then {(chapter, cell id): HTML}."""
    paths = [Path(app.srcdir) / "notebooks" / f"{name}.ipynb" for name in app.config.live_chapters]
    app.live = {
        (chapter, cell): pages.rendered("live.html", picture=picture, folder=f"../{place}")
        for chapter, cell, place, picture in frames.placed(paths, app.outdir, app.config.live_frames)
    }


def _read(app, docname, source):
    """What Sphinx reads in place of a file: a chapter with its live pictures, the claims with their links."""
    if docname == "docs/source":
        source[0] = CLAIM.sub(r"| [\1](#\1) |", source[0])
    if not docname.startswith("notebooks/"):
        return
    chapter, seen, kept = json.loads(source[0]), set(), []
    for cell in chapter["cells"]:
        if cell["metadata"].get("slideshow", {}).get("slide_type") == "notes":
            continue
        for tag in cell["metadata"].get("tags", []):
            if tag.startswith("claim-") and tag not in seen:
                seen.add(tag)
                kept.append({"cell_type": "markdown", "id": tag, "metadata": {}, "source": f"({tag})="})
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            cell["source"] = SUMMARY.sub(lambda line: FORMULA.sub(_formula, line[0]), text)
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                still = pages.picture(output)
                output["data"] = {"text/html": app.live.get((docname[10:], cell["id"]), still)}
        kept.append(cell)
    chapter["cells"] = kept
    source[0] = json.dumps(chapter)


def _formula(match):
    return pages.math(match[1], "inline")


def _inline(writer, node):
    formula = pages.math(node.astext(), "inline")
    seen = re.sub(r"<annotation.*?</annotation>|<[^>]+>|\s", "", formula)
    writer.body.append(f'<span class="formula">{formula}</span>' if len(seen) > WIDE else formula)
    raise SkipNode


def _block(writer, node):
    writer.body.append(f'<div class="formula">{pages.math(node.astext(), "block")}</div>\n')
    raise SkipNode


def _finish(app, error):
    if error is None:
        written = [path.read_text(encoding="utf-8") for path in Path(app.outdir).rglob("*.html")]
        static = Path(app.outdir) / "_static"
        (static / "math.woff").write_bytes(pages.math_font(written))
        # 1.5 MB for icons of one's own; those of the theme are in a font.
        (static / "scripts" / "fontawesome.js").write_text("")
