"""The frames of a live picture: all states of the controls that carry its story, drawn when a page is built.

A page shows two images, one over the other: the ground, which many states share, and what a state changes of it. Such a
change has 1 or 2 KB where a whole picture has 15. `written` is all that a page needs; where its frames were drawn
before, by the same code, it returns what is there.
"""

import hashlib
import io
import itertools
import json
import multiprocessing
import shutil
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

import posviz
from posviz import style, views
from posviz.live.drawing import DPI, Drawing

CHAPTER = 1_550_000  # bytes for the frames of one chapter: with its text it stays under 2 MB
MOST = 250  # states of a picture
FEW = 16  # states of a first try
SAMPLE = 9  # states that a ground is made of; odd, so that a median is one of them
GROUND = 15_000  # what a ground costs, in changed pixels
MOST_GROUNDS = 25


def placed(paths, folder, cache_folder, preset="reader"):
    """Draw the frames of all live pictures of these chapters, two chapters at a time, and put them below `folder`.

    Yields (stem of the chapter, id of the cell, where below `folder`, what the page says and asks for).
    """
    with multiprocessing.Pool(2) as pool:
        jobs = [(path, cache_folder, preset) for path in paths]
        for path, drawn in zip(paths, pool.starmap(_of_chapter, jobs, chunksize=1)):
            for cell, (source, picture) in drawn.items():
                place = f"live/{path.stem}/{cell}"
                shutil.copytree(source, Path(folder) / place, ignore=shutil.ignore_patterns("*.json"))
                yield path.stem, cell, place, picture


def _of_chapter(path, cache_folder, preset):
    """{cell id: (folder of the frames, what the page says and asks for)} of a chapter; what one leaves, others take."""
    stored = [
        (cell["id"], output["metadata"]["posviz"])
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        for output in cell.get("outputs", [])
        if "view" in output.get("metadata", {}).get("posviz", {})
    ]
    drawn, left = {}, CHAPTER
    for number, (cell, made) in enumerate(stored):
        budget = left // (len(stored) - number)
        drawn[cell] = written(made["view"], made["values"], budget, cache_folder, preset)
        left -= sum(file.stat().st_size for file in drawn[cell][0].glob("*.webp"))
    return drawn


def written(name, values, budget, cache_folder, preset="reader"):
    """Draw the frames of the view `name`, which starts at `values`; (folder, what the page says and asks for).

    The frames, `budget` bytes at most, lie in the folder, a new one in `cache_folder`: ground-0.webp …, and 0.webp …,
    one for each state, the last control counting fastest. The dict has title, width, height, box (where the changes
    lie, in percent of the picture), grounds (each state's), controls (caption, slides, words of its stops, at),
    sentences, goes (the state that a state leads to, where controls are coupled), fixed (the other controls, values).
    """
    made_by = json.dumps([name, values, budget, preset, _code()], sort_keys=True)
    folder = Path(cache_folder) / hashlib.sha256(made_by.encode()).hexdigest()[:16]
    told = folder / "picture.json"
    if not told.exists():
        folder.mkdir(parents=True, exist_ok=True)
        before, _ = style.current()
        style.use(preset)
        files, picture = _fitting(getattr(views, name)(), values, budget)
        style.use(before)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        told.write_text(json.dumps(picture), encoding="utf-8")
    return folder, json.loads(told.read_text(encoding="utf-8"))


def _fitting(view, values, budget):
    """({file: bytes}, what the page says and asks for), with as many states as fit; choices keep all their options."""
    most, before, (files, picture) = FEW, 0, _drawn(view, values, FEW)  # a first try, to know what a state takes
    while (count := len(picture["sentences"])) != before:
        size = sum(map(len, files.values()))
        if size <= budget and most > FEW:
            break
        before, most = count, min(MOST, int((1 if most == FEW else 0.9) * count * budget / size))
        files, picture = _drawn(view, values, max(most, FEW))
    return files, picture


def stops(view, start, most=MOST):
    """{name: values} of the controls that carry the story of `view`, in the order in which they are set.

    Together they have about `most` states. Choices keep all their options; a slider stops at `start` and where the text
    asks for it, and where there is room at both ends and in between.
    """
    controls, found, left = {control.name: control for control in view.controls}, {}, most
    story = view.story or {view.first_slider.name: ()}
    every = {name: controls[name].stops(start[name], 10**6) for name in story}
    shortest_first = sorted(every, key=lambda name: (controls[name].slides, len(every[name])))
    for number, name in enumerate(shortest_first):
        room = int(left ** (1 / (len(every) - number)) + 1e-9)
        found[name] = every[name]
        if controls[name].slides and len(every[name]) > room:
            asked = {start[name], *story[name]}
            between = max(room - len(asked), 2 if len(asked) == 1 else 0)
            found[name] = sorted(asked | set(controls[name].stops(start[name], between) if between > 1 else ()))
        left /= len(found[name])
    return {name: found[name] for name in every}


def _drawn(view, given, most):
    """({file: bytes}, what the page says and asks for)."""
    drawing = Drawing(view, **given)
    start, controls = drawing.values, {control.name: control for control in view.controls}
    moving = stops(view, start, most)
    counts = [len(values) for values in moving.values()]
    frames, sentences, goes = [], [], []
    for number, state in enumerate(itertools.product(*moving.values())):
        values = start
        for name, value in zip(moving, state):
            values = view.after_move(values, name, value)
        pixels, sentence = drawing.show(**values)
        pixels = pixels & 0xF8 | pixels >> 5  # 32 of 256 shades: half the bytes, and nobody sees it
        frames.append(pixels.view(np.uint32)[..., 0])  # a number for each colour
        sentences.append(sentence)
        known = all(values[name] in moving[name] for name in moving)
        reached = [moving[name].index(values[name]) for name in moving] if known else number
        goes.append(int(np.ravel_multi_index(reached, counts)) if known else number)
    files, box, grounds = _files(np.array(frames), counts)
    for number in set(range(len(goes))) - set(goes):
        del files[f"{number}.webp"]  # never shown
    width, height = (round(side * DPI) for side in view.size)
    shown = [
        {"caption": controls[name].caption, "slides": controls[name].slides, "at": values.index(start[name])}
        | {"words": [controls[name].words(value) for value in values]}
        for name, values in moving.items()
    ]
    fixed = [[control.caption, control.words(start[name])] for name, control in controls.items() if name not in moving]
    said = {"title": view.title, "width": width, "height": height, "controls": shown, "sentences": sentences}
    return files, said | {"goes": goes, "fixed": fixed, "box": box, "grounds": grounds}


def _files(frames, counts):
    """({file: bytes}, box, the ground of each frame) of all frames, (states, height, width)."""
    whose, grounds = _grounds(frames, counts)
    changed = np.zeros(frames.shape[1:], bool)
    for frame, ground in zip(frames, whose):
        changed |= frame != grounds[ground]
    if not changed.any():
        changed[0, 0] = True
    (top, bottom), (left, right) = ((np.flatnonzero(changed.any(axis=axis))[[0, -1]] + [0, 1]) for axis in (1, 0))
    files = {f"ground-{number}.webp": _webp(ground) for number, ground in enumerate(grounds)}
    for number, (frame, ground) in enumerate(zip(frames, whose)):
        part = frame[top:bottom, left:right]
        files[f"{number}.webp"] = _webp(part, part != grounds[ground][top:bottom, left:right])
    height, width = changed.shape
    box = [left / width, top / height, (right - left) / width, (bottom - top) / height]
    return files, [round(100 * float(share), 4) for share in box], whose


def _grounds(frames, counts):
    """(the number of each frame's ground, the grounds): one for all, or one for each stop of a control if that pays."""
    at = np.unravel_index(np.arange(len(frames)), counts)
    best = None
    for groups in (np.zeros(len(frames), int), *(each for each, count in zip(at, counts) if count <= MOST_GROUNDS)):
        grounds, cost = [], 0
        for group in range(groups.max() + 1):
            members = np.flatnonzero(groups == group)
            odd = min(SAMPLE, len(members) - 1 + len(members) % 2)
            few = frames[members[np.linspace(0, len(members) - 1, odd).astype(int)]]
            grounds.append(np.sort(few, axis=0)[len(few) // 2])
            cost += GROUND + (few != grounds[-1]).mean(axis=0).sum() * len(members)
        if best is None or cost < best[0]:
            best = cost, groups.tolist(), grounds
    return best[1:]


def _webp(colours, seen=True):
    """Such colours as lossless WebP, clear where they are not `seen`."""
    pixels = np.where(seen, colours, np.uint32(0)).view(np.uint8).reshape(*colours.shape, 4)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "WEBP", lossless=True, quality=50, method=1)
    return file.getvalue()


@cache
def _code():
    """A hash of all code and data that a frame depends on."""
    here = Path(posviz.__file__).parent
    files = [Path(__file__), *(file for file in sorted(here.rglob("*")) if file.is_file() and file.suffix != ".pyc")]
    return hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()
