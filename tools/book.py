"""The course as a site, `make site`: every chapter, a front page, the notation and the claims of the source document.

    python tools/book.py [folder]                      all chapters into site/
    python tools/book.py build/x --live 05_rope        moving pictures in these chapters, stills in the others

Sphinx builds it, with myst-nb and a book theme, from the chapters as they are stored; web/conf.py says how. Only the
live pictures are ours: live_pages.py and frames.py. The pages need no kernel and no other host.
"""

import argparse
import io
import shutil
import sys
import tempfile
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

import folders
import pages

FRAMES = pages.ROOT / "build" / "frames"
PAGES = ("README.md", "docs/notation.md", "docs/source.md")


def build(folder, live=None, cache_folder=FRAMES):
    """Write the site into `folder`, which an earlier site is emptied from.

    `live` names the chapters whose pictures move (all); frames that were drawn before lie in `cache_folder`. Raises
    ValueError for a name that is no chapter's, for a chapter that was not run and for a link that leads nowhere,
    FileExistsError for a folder with other files.
    """
    paths, moving = pages.chosen(), pages.chosen(live)
    folder, warnings = folders.emptied(folder, "tools/book.py"), io.StringIO()
    settings = {"live_chapters": list(moving), "live_frames": str(cache_folder)}
    with tempfile.TemporaryDirectory() as scratch, docutils_namespace(), patch_docutils(pages.WEB):
        source = Path(scratch) / "source"
        for path in (*paths.values(), *(pages.ROOT / name for name in PAGES)):
            copy = source / path.relative_to(pages.ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        shutil.copyfile(pages.WEB / "index.md", source / "index.md")
        app = Sphinx(
            source, pages.WEB, folder, Path(scratch) / "doctrees", "html", settings, None, warnings, parallel=2
        )
        app.build()
    if warnings.getvalue():
        raise ValueError(warnings.getvalue())


def main():
    parser = argparse.ArgumentParser(description="Write the course as a site.")
    parser.add_argument("folder", nargs="?", type=Path, default=pages.ROOT / "site")
    parser.add_argument("--live", nargs="*", help="chapters whose pictures move, such as 05_rope; all if not given")
    parser.add_argument("--frames", type=Path, default=FRAMES, help="where drawn frames are kept for the next time")
    options = parser.parse_args()
    try:
        build(options.folder, options.live, options.frames)
    except (ValueError, FileExistsError) as error:
        sys.exit(str(error))
    for page in sorted(options.folder.glob("notebooks/*.html")):
        pictures = sum(file.stat().st_size for file in (options.folder / "live" / page.stem).rglob("*.webp"))
        print(f"{page.name}: {page.stat().st_size + pictures:,} bytes with its pictures")


if __name__ == "__main__":
    main()
