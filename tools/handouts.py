"""The course as static pages, `make site`: every chapter, a front page, the glossary and the table of claims.

    python tools/handouts.py [folder]                      all chapters into site/
    python tools/handouts.py build/x --live 05_rope        frames for the named chapters only, stills in the others

The pages need no kernel and no other host. A live picture becomes frames of its first slider, drawn here by the same
view as in the notebook; a range input chooses among them. The other controls stay where the chapter starts them.
"""

import argparse
import html
import io
import json
import re
import sys
from pathlib import Path

import numpy as np
from bs4 import BeautifulSoup
from PIL import Image

import folders
import pages
from posviz import views
from posviz.live import Drawing
from posviz.live.drawing import DPI

FEWEST_FRAMES = 5
PICTURES_OF_A_CHAPTER = 1_550_000  # bytes: with text, formulas and script a chapter stays under 2 MB


def build(folder, live=None):
    """Write the pages into `folder`, which earlier pages are emptied from.

    `live` names the chapters whose pictures move (all). Raises ValueError for a name that is no chapter's and for a
    chapter that was not run, FileExistsError for a folder with other files.
    """
    paths, moving = pages.chosen(), pages.chosen(live)
    folder = folders.emptied(folder, "tools/handouts.py")
    chapters = {name: pages.chapter(path) for name, path in paths.items()}
    bodies = {
        f"{name}.html": (title, _chapter_body(cells, folder / name if name in moving else None))
        for name, (title, cells) in chapters.items()
    }
    bodies = _front_page(chapters) | bodies | _readme_pages(chapters)
    written = {name: _page(name, bodies) for name in bodies}
    for name, page in written.items():
        (folder / name).write_text(page, encoding="utf-8")
    script = (pages.WEB / "handout.js").read_text(encoding="utf-8")
    headings = json.dumps(_headings(bodies), ensure_ascii=False)
    (folder / "course.js").write_text(f"const HEADINGS = {headings};\n{script}", encoding="utf-8")
    style = "".join((pages.WEB / name).read_text(encoding="utf-8") for name in ("text.css", "handout.css"))
    (folder / "course.css").write_text(style, encoding="utf-8")
    (folder / "math.woff").write_bytes(pages.math_font(written.values()))


def _chapter_body(cells, folder):
    """The body of a chapter's page; its frames go into `folder` (None: stills only)."""
    parts, seen = [], set()
    pictures = sum("view" in output.picture for cell in cells for output in cell.outputs)
    for cell in cells:
        for tag in cell.tags:
            if tag.startswith("claim-") and tag not in seen:
                seen.add(tag)
                parts.append(f'<span id="{tag}"></span>')
        if cell.slide == "notes":
            parts.append(f'<div class="teacher">{cell.html}</div>')
            continue
        parts.append(cell.html)
        for output in cell.outputs:
            if "view" in output.picture and folder:
                parts.append(live(**output.picture, folder=folder / cell.id, budget=PICTURES_OF_A_CHAPTER // pictures))
            else:
                parts.append(f"<p>{output.html}</p>" if output.is_picture else output.html)
    return "\n".join(parts)


def live(view, values, folder, budget):
    """HTML of a picture with one slider; its frames are written into `folder` and stay under `budget` bytes.

    `view` is its name in posviz.views, `values` are those of its controls where the chapter starts them.
    """
    view = getattr(views, view)()
    drawing = Drawing(view, **values)
    slider, start = view.first_slider, drawing.values
    stops, pictures, sentences = slider.stops(start[slider.name]), [], []
    for stop in stops:
        pixels, sentence = drawing.show(**view.after_move(start, slider.name, stop))
        pictures.append(compressed(pixels))
        sentences.append(sentence)
    at, kept = thinned([len(picture) for picture in pictures], stops.index(start[slider.name]), budget)
    folder.mkdir(parents=True)
    for number, frame in enumerate(kept):
        (folder / f"{number}.webp").write_bytes(pictures[frame])
    width, height = (round(side * DPI) for side in view.size)
    others = [control for control in view.controls if control is not slider]
    return pages.rendered(
        "live.html",
        caption=slider.caption,
        title=view.title,
        folder=f"{folder.parent.name}/{folder.name}",
        at=at,
        width=width,
        height=height,
        shown=[slider.words(stops[frame]) for frame in kept],
        sentences=[sentences[frame] for frame in kept],
        fixed=[(c.label or c.name.replace("_", " "), c.words(start[c.name])) for c in others],
    )


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


def readme_sections():
    """{heading: Markdown} of the README, the text before the first section under the empty heading."""
    text = (pages.ROOT / "README.md").read_text(encoding="utf-8")
    first, *others = re.split(r"^## ", text, flags=re.M)
    return {"": first} | {heading: body for heading, _, body in (other.partition("\n") for other in others)}


def _front_page(chapters):
    """{file: (title, body)} of the front page: the README's beginning, its chapters, a list of all pages."""
    sections = readme_sections()
    text = sections[""] + "".join(
        f"## {heading}\n{body}"
        for heading, body in sections.items()
        if re.search("chapters", heading, re.I) and "claim-" not in body
    )
    listed = [(f"{name}.html", title) for name, (title, _) in chapters.items()]
    listed += [(name, title) for name, (title, _) in _readme_pages(chapters).items()]
    items = "".join(f'<li><a href="{name}">{html.escape(title)}</a></li>' for name, title in listed)
    body = f'{pages.markdown(text)}<h2 id="pages">Pages</h2><ul>{items}</ul>'
    return {"index.html": ("Positional encodings", body)}


def _readme_pages(chapters):
    """{file: (title, body)} of the glossary and the table of claims: sections of the README."""
    found = {}
    for heading, body in readme_sections().items():
        if re.search("glossary", heading, re.I):
            found["glossary.html"] = "Glossary", pages.markdown(f"# {heading}\n{body}")
        elif re.search(r"^\|.*\bclaim-", body, re.M):
            found["claims.html"] = "Claims", _with_claim_links(pages.markdown(f"# {heading}\n{body}"), chapters)
    return found


def _with_claim_links(body, chapters):
    """The table of claims with each tag linked to the cell that shows it."""
    home = {tag: name for name, (_, cells) in reversed(chapters.items()) for cell in cells for tag in cell.tags}

    def linked(match):
        tag = match[0]
        return f'<a href="{home[tag]}.html#{tag}">{tag}</a>' if tag in home else tag

    return re.sub(r"claim-[a-z0-9.-]+", linked, body)


def _headings(bodies):
    """[page, id, words, title] of every heading, for the search."""
    return [
        [name, heading["id"], heading.get_text(), title]
        for name, (title, body) in bodies.items()
        for heading in BeautifulSoup(body, "html.parser").find_all(re.compile("^h[1-3]$"), id=True)
    ]


def _page(name, bodies):
    """The whole page `name` of these bodies, with links to all others."""
    title, body = bodies[name]
    shown = [(other, _short(other, bodies)) for other in bodies]
    here = list(bodies).index(name)
    return pages.rendered("handout.html", title=title, body=_links(body, bodies), pages=shown, here=here)


def _links(body, bodies):
    """`body` with links to notebooks turned into links to pages; a link to a file that is no page loses its target."""
    page = BeautifulSoup(body, "html.parser")
    for link in page.find_all("a", href=True):
        target, _, anchor = link["href"].partition("#")
        if re.match(r"[a-z]+:", target) or not target:
            continue
        file = re.sub(r"\.ipynb$", ".html", target.rpartition("/")[2])
        if file in bodies:
            link["href"] = file + (f"#{anchor}" if anchor else "")
        else:
            link.unwrap()
    return str(page)


def _short(name, bodies):
    """What a page is called in a list: its title up to the colon."""
    return "Start" if name == "index.html" else bodies[name][0].partition(":")[0].strip()


def main():
    parser = argparse.ArgumentParser(description="Write the course as static pages.")
    parser.add_argument("folder", nargs="?", type=Path, default=pages.ROOT / "site")
    parser.add_argument("--live", nargs="*", help="chapters whose pictures move, such as 05_rope; all if not given")
    options = parser.parse_args()
    try:
        build(options.folder, options.live)
    except (ValueError, FileExistsError) as error:
        sys.exit(str(error))
    for page in sorted(options.folder.glob("*.html")):
        size = page.stat().st_size + sum(file.stat().st_size for file in (options.folder / page.stem).rglob("*.webp"))
        print(f"{page.name}: {size:,} bytes with its pictures")


if __name__ == "__main__":
    main()
