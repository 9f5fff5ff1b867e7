"""Chapters as HTML without a kernel and without any other host: what the site and the slides have in common.

What surrounds a chapter stands in the templates of web/. Formulas become MathML when a page is built, so a page has no
formula script; the one mathematical font comes from the package ziamath and is cut down to the signs in use. Headings
get the ids that JupyterLab gives them, so that links inside a chapter work in both.
"""

import base64
import html
import importlib.util
import io
import json
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path

from bs4 import BeautifulSoup
from fontTools import subset
from fontTools.ttLib import TTFont
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from latex2mathml.converter import convert
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

import notebooks

ROOT = Path(__file__).resolve().parent.parent
WEB = Path(__file__).resolve().parent / "web"
CHAPTERS = sorted((ROOT / "notebooks").glob("*.ipynb"))
TEMPLATES = Environment(
    loader=FileSystemLoader(WEB), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
# A browser adds signs that stand in no text: the bar of a root, italic letters, the parts of tall brackets. So the font
# keeps whole blocks: ASCII, Latin, Greek, dashes and primes, arrows, operators, floors and ceilings, angle brackets,
# italic letters. The parts come along with their signs.
SIGNS = [
    (0x20, 0x7E),
    (0xA0, 0xFF),
    (0x370, 0x3FF),
    (0x2010, 0x2037),
    (0x210E, 0x210E),
    (0x2190, 0x22FF),
    (0x2308, 0x230B),
    (0x27E8, 0x27E9),
    (0x1D434, 0x1D467),
    (0x1D6E2, 0x1D71B),
]
TEMPLATES.policies["json.dumps_kwargs"] = {"ensure_ascii": False}


@dataclass
class Output:
    """One output of a cell, ready for a page."""

    html: str  # a picture as an image of the page itself
    is_picture: bool = False
    picture: dict = field(default_factory=dict)  # "view" and "values" from which it can be drawn again


@dataclass
class Cell:
    """One cell of a chapter: its HTML and what else a page wants to know about it."""

    id: str
    kind: str  # "markdown" or "code"
    slide: str  # slide, subslide, fragment, skip, notes
    tags: list
    source: str
    html: str  # of the text, or of the code without its outputs
    outputs: list  # of Output


def chosen(names=None):
    """{stem: path} of the chapters, or of the named ones.

    Raises ValueError for a name that is no chapter's, and for a chapter that was not run: its page would show nothing.
    """
    paths = {path.stem: path for path in CHAPTERS}
    if unknown := [name for name in names or () if name not in paths]:
        raise ValueError(f"there is no chapter {', '.join(unknown)}; there are {', '.join(paths)}")
    paths = {name: path for name, path in paths.items() if names is None or name in names}
    if found := [f"{path.name}: {problem}" for path in paths.values() for problem in notebooks.not_run(path)]:
        raise ValueError(
            "\n".join([*found, "Run these chapters and save them, or use `make notebooks`, then try again."])
        )
    return paths


def rendered(template, **values):
    """The text of a template of web/ with these values; all are escaped but those that the template calls safe."""
    return TEMPLATES.get_template(template).render(values)


def chapter(path):
    """(title, cells) of the notebook at `path`."""
    cells, number, slugs = [], 0, {}
    for raw in json.loads(Path(path).read_text(encoding="utf-8"))["cells"]:
        source, outputs = "".join(raw["source"]), []
        if raw["cell_type"] == "code":
            number += 1
            text = code(source, number)
            outputs = [_output(output) for output in raw["outputs"]]
        else:
            text = markdown(source, slugs)
        slide = raw["metadata"].get("slideshow", {}).get("slide_type", "slide")
        cells.append(Cell(raw["id"], raw["cell_type"], slide, raw["metadata"].get("tags", []), source, text, outputs))
    title = next(match[1] for cell in cells if (match := re.match(r"# (.+)", cell.source)))
    return title, cells


def markdown(source, slugs=None):
    """HTML of Markdown with formulas as MathML. `slugs` counts the heading ids of a page, so that none comes twice."""
    page = BeautifulSoup(MarkdownWithMath(_Renderer(escape=False)).render(source), "html.parser")
    slugs = {} if slugs is None else slugs
    for heading in page.find_all(re.compile("^h[1-6]$")):
        slug = slug_of(heading)
        slugs[slug] = slugs.get(slug, 0) + 1
        heading["id"] = slug if slugs[slug] == 1 else f"{slug}-{slugs[slug]}"
    for table in page.find_all("table"):
        table.wrap(page.new_tag("div", attrs={"class": "scrolls"}))
    for picture in page.find_all("img"):
        if not picture.get("alt"):
            raise ValueError(f"a picture without alternative text: {picture['src'][:80]}")
    return str(page)


def slug_of(heading):
    """The id that JupyterLab gives to a heading: its words, joined by hyphens."""
    for formula in heading.find_all("annotation"):
        formula.decompose()
    return re.sub(r"\s", "-", heading.get_text().strip())


class _Renderer(IPythonRenderer):
    def heading(self, text, level, **attrs):
        return f"<h{level}>{text}</h{level}>\n"

    def block_code(self, code, info=None):
        return coloured(code) if (info or "").startswith("python") else f"<pre>{html.escape(code)}</pre>\n"

    def inline_math(self, body):
        return math(body, "inline")

    def block_math(self, body):
        return f'<div class="formula scrolls">{math(body, "block")}</div>'


def math(latex, display):
    """A formula as MathML; ValueError where the converter does not know a command and would print it as it is."""
    latex = latex.strip().replace("{aligned}", "{split}")  # the same, by the name that it knows
    latex = re.sub(r"\\tag\{(.*?)\}", r"\\qquad\\text{(\1)}", latex)
    element = convert(latex, display=display)
    if "<mi>&</mi>" in element or "\\" in re.sub(r"<annotation.*?</annotation>", "", element):
        raise ValueError(f"a formula with a command that MathML does not know: {latex}")
    element = re.sub(r"<mi>([A-Za-z]{2,})</mi>", r'<mo lspace="0.17em" rspace="0.17em">\1</mo>', element)  # cos, ln
    return element.replace("<mo>/</mo>", '<mo lspace="0" rspace="0">/</mo>')


def code(source, number):
    """A code cell with its number, coloured."""
    return f'<div class="code"><span class="count">[{number}]</span>{coloured(source)}</div>'


def coloured(source):
    return f"<pre><code>{highlight(source, PythonLexer(), HtmlFormatter(nowrap=True)).rstrip()}</code></pre>\n"


def _output(output):
    data = output.get("data", {})
    if "image/png" in data:
        return Output(picture(output), is_picture=True, picture=output["metadata"].get("posviz", {}))
    for kind, wrap in (("text/html", str), ("text/markdown", markdown), ("text/latex", _latex)):
        if kind in data:
            return Output(wrap("".join(data[kind])))
    text = "".join(output.get("text", "") or data["text/plain"])
    return Output(f'<pre class="output">{html.escape(text.rstrip())}</pre>\n')


def _latex(text):
    return f'<div class="formula scrolls">{math(text.strip("$"), "block")}</div>'


def picture(output):
    """A stored picture, PNG in base64, as an image of the page itself, in its own size."""
    png = "".join(output["data"]["image/png"]).replace("\n", "")
    alt = html.escape(output["metadata"].get("image/png", {}).get("alt", ""), quote=True)
    if not alt:
        raise ValueError("a picture without alternative text among the outputs")
    width, height = struct.unpack(">II", base64.b64decode(png[:64])[16:24])
    return f'<img src="data:image/png;base64,{png}" width="{width}" height="{height}" alt="{alt}">'


def shipped(package, path):
    """The path of a file that an installed package ships; the package itself is not imported."""
    found = importlib.util.find_spec(package)
    file = found and Path(found.submodule_search_locations[0]) / path
    if not file or not file.exists():
        raise FileNotFoundError(f"{package} with {path} is missing: pip install -r tools/requirements.txt")
    return file


def math_font(pages):
    """The mathematical font STIX Two Math as WOFF: SIGNS, and what else the `pages` (HTML texts) use in formulas."""
    signs = {chr(code) for first, last in SIGNS for code in range(first, last + 1)}
    for page in pages:
        for formula in re.findall(r"<math.*?</math>", page, re.DOTALL):
            signs |= set(html.unescape(re.sub(r"<[^>]+>", "", formula)))
    options = subset.Options()
    options.flavor = "woff"
    options.layout_features = []
    options.name_IDs = [0, 1, 2, 13, 14]  # the licence stays in the font
    font = TTFont(shipped("ziamath", "fonts/STIXTwoMath-Regular.ttf"), recalcTimestamp=False)  # twice the same bytes
    cut = subset.Subsetter(options)
    cut.populate(unicodes=map(ord, signs))
    cut.subset(font)
    font.flavor = "woff"
    content = io.BytesIO()
    font.save(content)
    return content.getvalue()
