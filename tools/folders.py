"""The folders that the tools write: made new each time, never at the cost of somebody else's files."""

import shutil
from pathlib import Path

MARK = ".made-by-posviz"


def emptied(folder, tool):
    """The path `folder`, made, or emptied of what an earlier run of the same `tool` (its name) left there.

    Raises FileExistsError if it holds files and no such run made it.
    """
    folder = Path(folder)
    mark, words = folder / MARK, f"{tool} makes this folder and empties it before it writes again.\n"
    if folder.exists():
        if any(folder.iterdir()) and not (mark.is_file() and mark.read_text(encoding="utf-8") == words):
            raise FileExistsError(f"{folder} holds files that {tool} did not write: remove it, or name another folder")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    mark.write_text(words, encoding="utf-8")
    return folder
