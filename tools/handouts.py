"""The course as static pages, `make site`: every chapter, a front page, the glossary and the table of claims.

    python tools/handouts.py [folder]                      all chapters into site/
    python tools/handouts.py build/x --live 05_rope        frames for the named chapters only, stills in the others

The pages need no kernel and no other host. A live picture becomes frames of its first slider, drawn here by the same
view as in the notebook; a range input chooses among them. The other controls stay where the chapter starts them.
"""

import argparse
import ast
import html
import io
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pages
from bs4 import BeautifulSoup
from PIL import Image

from posviz import frames, views
from posviz.views import base

MOST_FRAMES = 41
FEWEST_FRAMES = 5
PICTURES_OF_A_CHAPTER = 1_550_000  # bytes: with text, formulas and script a chapter stays under 2 MB
SLIDERS = (base.Steps, base.Range, base.PowersOfTen)
CALL = re.compile(r"^(?:\w+ = )?(views\.\w+\(\)\.explorer\(.*\))$", re.M)


def build(folder, live=None):
    """Write the pages into `folder`, which is emptied before; `live` names the chapters whose pictures move (all)."""
    folder = Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    written, headings = {}, []
    chapters = {path.stem: pages.chapter(path) for path in pages.CHAPTERS}
    for name, (title, cells) in chapters.items():
        moves = live is None or name in live
        written[f"{name}.html"] = title, _chapter_page(cells, folder / name if moves else None)
    written |= _readme_pages(chapters)
    for name, (title, body) in written.items():
        for heading in BeautifulSoup(body, "html.parser").find_all(re.compile("^h[1-3]$"), id=True):
            headings.append([name, heading["id"], heading.get_text(), title])
    names = [
        name
        for name in ("index.html", *(f"{name}.html" for name in chapters), "glossary.html", "claims.html")
        if name in written
    ]
    for name in names:
        title, body = written[name]
        written[name] = _page(name, title, _links(body, written, name), names, written)
        (folder / name).write_text(written[name], encoding="utf-8")
    script = (pages.WEB / "handout.js").read_text(encoding="utf-8")
    (folder / "course.js").write_text(
        f"const HEADINGS = {json.dumps(headings, ensure_ascii=False)};\n{script}", encoding="utf-8"
    )
    style = "".join((pages.WEB / name).read_text(encoding="utf-8") for name in ("text.css", "handout.css"))
    (folder / "course.css").write_text(style, encoding="utf-8")
    (folder / "math.woff").write_bytes(pages.math_font(written.values()))


def _chapter_page(cells, folder):
    """The body of a chapter's page; its frames go into `folder` (None: stills only)."""
    parts, seen = [], set()
    pictures = sum(bool(CALL.search(cell.source)) for cell in cells if cell.kind == "code")
    for cell in cells:
        for tag in cell.tags:
            if tag.startswith("claim-") and tag not in seen:
                seen.add(tag)
                parts.append(f'<span id="{tag}"></span>')
        if cell.slide == "notes":
            parts.append(f'<div class="teacher">{cell.html}</div>')
            continue
        parts.append(cell.html)
        call = CALL.search(cell.source) if cell.kind == "code" and folder else None
        for output in cell.outputs:
            if isinstance(output, tuple) and call:
                output = live(call[1], folder / cell.id, PICTURES_OF_A_CHAPTER // pictures)
            parts.append(f"<p>{pages.still(output)}</p>" if isinstance(output, tuple) else output)
    return "\n".join(parts)


def live(call, folder, budget):
    """HTML of a picture with one slider; its frames are written into `folder` and stay under `budget` bytes.

    `call` is the line of the notebook, `views.X().explorer(...)`, whose arguments are plain values.
    """
    made = ast.parse(call, mode="eval").body
    view = getattr(views, made.func.value.func.attr)()
    start = view.values(**{word.arg: ast.literal_eval(word.value) for word in made.keywords})
    control = next((c for c in view.controls if isinstance(c, SLIDERS)), view.controls[0])
    at, values = stops(control, start[control.name])
    drawn, figure, _ = view.drawn(**start)
    layers = frames.Layers(figure, base.artists_of(drawn))
    pictures, sentences = [], []
    for value in values:
        state = start | {control.name: value}
        state |= view.follow(control.name, start[control.name], state)
        sentences.append(drawn.update(**state))
        pictures.append(compressed(layers.frame()))
    at, kept = thinned([len(picture) for picture in pictures], at, budget)
    values, pictures, sentences = ([those[k] for k in kept] for those in (values, pictures, sentences))
    folder.mkdir(parents=True)
    for number, picture in enumerate(pictures):
        (folder / f"{number}.webp").write_bytes(picture)
    width, height = (round(side * base.DPI) for side in view.size)
    source = f"{folder.parent.name}/{folder.name}"
    shown = [words(control, value) for value in values]
    data = {"folder": source, "title": view.title, "shown": shown, "sentences": sentences}
    fixed = ", ".join(
        f"{c.label or c.name.replace('_', ' ')}: {words(c, start[c.name])}" for c in view.controls if c is not control
    )
    fixed = f"Here only this slider moves ({fixed}). " if fixed else ""
    escape = lambda text: html.escape(text, quote=True)  # noqa: E731
    return f"""<figure class="live">
<label hidden>{escape(control.caption)}: <output>{escape(shown[at])}</output>
<input type="range" min="0" max="{len(values) - 1}" value="{at}" aria-valuetext="{escape(shown[at])}"></label>
<img src="{source}/{at}.webp" width="{width}" height="{height}" alt="{escape(f"{view.title}. {sentences[at]}")}">
<figcaption aria-live="polite">{escape(sentences[at])}</figcaption>
<p class="fixed">{escape(fixed)}In JupyterLab the whole picture is live.</p>
<script type="application/json">{json.dumps(data, ensure_ascii=False).replace("</", "<" + chr(92) + "/")}</script>
</figure>"""


def stops(control, start):
    """(index of `start`, values): where the slider of a page stops, `start` and both ends among them."""
    if isinstance(control, base.Choice):
        values = list(control.options)
    elif isinstance(control, base.Toggle):
        values = [False, True]
    elif isinstance(control, base.Text):
        values = [start]
    else:
        low, high, place = control.low, control.high, start
        if isinstance(control, base.PowersOfTen):
            place = np.log10(start)
        count = int(round((high - low) / control.step)) + 1
        places = {low + control.step * round(k) for k in np.linspace(0, count - 1, min(count, MOST_FRAMES))}
        places = sorted({round(float(p), 9) for p in places} | {round(float(place), 9)})
        if isinstance(control, base.PowersOfTen):
            values = [start if np.isclose(p, place) else 10.0**p for p in places]
        else:
            values = [int(p) if isinstance(control, base.Steps) else float(p) for p in places]
            start = values[int(np.argmin([abs(value - start) for value in values]))]
    return values.index(start), values


def thinned(sizes, at, budget):
    """(new index of `at`, the frames kept): every second or third ... one, so that they fit. The ends and `at` stay."""
    for step in range(1, len(sizes) + 1):
        kept = [k for k in range(len(sizes)) if k % step == 0 or k in (at, len(sizes) - 1)]
        if sum(sizes[k] for k in kept) <= budget or len(kept) <= FEWEST_FRAMES:
            return kept.index(at), kept


def compressed(pixels):
    """A frame as lossless WebP with at most 64 colours."""
    picture = Image.fromarray(np.ascontiguousarray(pixels[..., :3]))
    picture = picture.quantize(64, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).convert("RGB")
    file = io.BytesIO()
    picture.save(file, "WEBP", lossless=True, quality=50, method=3)
    return file.getvalue()


def words(control, value):
    """A control's value as a reader reads it."""
    if isinstance(control, base.Toggle):
        return "on" if value else "off"
    if isinstance(control, (base.Choice, base.Text)):
        return str(value)
    if isinstance(control, base.PowersOfTen):
        number = f"{value:,.0f}" if control.low >= 0 else f"{value:.3g}"
    elif isinstance(control, base.Steps):
        number = f"{value:,}"
    else:
        number = f"{value:.{max(0, len(f'{control.step:g}'.partition('.')[2]))}f}"
    return f"{number} {control.unit}".strip()


def readme_sections():
    """{heading: Markdown} of the README, the text before the first section under the empty heading."""
    text = (pages.ROOT / "README.md").read_text(encoding="utf-8")
    first, *others = re.split(r"^## ", text, flags=re.M)
    return {"": first} | {heading: body for heading, _, body in (other.partition("\n") for other in others)}


def _readme_pages(chapters):
    """{file: (title, body)} of the front page, the glossary and the table of claims: sections of the README."""
    sections = readme_sections()
    found = {}
    for heading, body in sections.items():
        if re.search("glossary", heading, re.I):
            found["glossary.html"] = "Glossary", pages.markdown(f"# {heading}\n{body}")
        elif re.search(r"^\|.*\bclaim-", body, re.M):
            found["claims.html"] = "Claims", _with_claim_links(pages.markdown(f"# {heading}\n{body}"), chapters)
    front = sections[""] + "".join(
        f"## {heading}\n{body}"
        for heading, body in sections.items()
        if re.search("chapters", heading, re.I) and "claim-" not in body
    )
    listed = [(f"{name}.html", title) for name, (title, _) in chapters.items()]
    listed += [(name, title) for name, (title, _) in found.items()]
    items = "".join(f'<li><a href="{name}">{html.escape(title)}</a></li>' for name, title in listed)
    front = f'{pages.markdown(front)}<h2 id="pages">Pages</h2><ul>{items}</ul>'
    return {"index.html": ("Positional encodings", front)} | found


def _with_claim_links(body, chapters):
    """The table of claims with each tag linked to the cell that shows it."""
    home = {tag: name for name, (_, cells) in reversed(chapters.items()) for cell in cells for tag in cell.tags}
    link = lambda match: (
        f'<a href="{home[match[0]]}.html#{match[0]}">{match[0]}</a>'  # noqa: E731
        if match[0] in home
        else match[0]
    )
    return re.sub(r"claim-[a-z0-9.-]+", link, body)


def _links(body, written, name):
    """`body` with links to notebooks turned into links to pages; a link to a file that is no page loses its target."""
    page = BeautifulSoup(body, "html.parser")
    for link in page.find_all("a", href=True):
        target, _, anchor = link["href"].partition("#")
        if re.match(r"[a-z]+:", target) or not target:
            continue
        file = re.sub(r"\.ipynb$", ".html", target.rpartition("/")[2])
        if file in written:
            link["href"] = file + (f"#{anchor}" if anchor else "")
        else:
            link.unwrap()
    return str(page)


def _page(name, title, body, names, written):
    """A whole page around a body."""
    current = ' aria-current="page"'
    items = "".join(
        f'<li><a href="{other}"{current if other == name else ""}>{_short(other, written)}</a></li>' for other in names
    )
    place = names.index(name)
    before = (
        f'<a href="{names[place - 1]}" rel="prev">← {_short(names[place - 1], written)}</a>'
        if place
        else "<span></span>"
    )
    after = (
        f'<a href="{names[place + 1]}" rel="next">{_short(names[place + 1], written)} →</a>'
        if place + 1 < len(names)
        else ""
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="course.css">
</head>
<body>
<a class="skip" href="#main">To the text</a>
<header>
<nav aria-label="Chapters"><ul>{items}</ul></nav>
<div class="search" role="search" hidden><label>Search the headings: <input type="search" autocomplete="off"></label>
<span role="status"></span><ul aria-label="Headings found"></ul></div>
</header>
<main id="main" tabindex="-1">
{body}
<nav class="next" aria-label="Next and previous page">{before}{after}</nav>
</main>
<script src="course.js"></script>
</body>
</html>
"""


def _short(name, written):
    """What a page is called in a list: its title up to the colon."""
    return html.escape("Start" if name == "index.html" else written[name][0].partition(":")[0].strip())


def main():
    parser = argparse.ArgumentParser(description="Write the course as static pages.")
    parser.add_argument("folder", nargs="?", type=Path, default=pages.ROOT / "site")
    parser.add_argument("--live", nargs="*", help="chapters whose pictures move, such as 05_rope; all if not given")
    options = parser.parse_args()
    build(options.folder, options.live)
    for page in sorted(options.folder.glob("*.html")):
        size = page.stat().st_size + sum(file.stat().st_size for file in (options.folder / page.stem).rglob("*.webp"))
        print(f"{page.name}: {size:,} bytes with its pictures")


if __name__ == "__main__":
    main()
