"""The command `posviz`, also `python -m posviz`: the chapters in a folder of the learner's own, open in JupyterLab.

    posviz [FOLDER]              copy the chapters into FOLDER (default: posviz-course) and open JupyterLab there
    posviz test [CHAPTER ...]    run chapters (default: all) and compare every text output with the stored one

What a learner wrote is never overwritten. A record in the folder holds the SHA-256 of each file that was put there. A
file that differs from it is the learner's, be it for a note, an answer or the outputs of a run: it stays, and a newer
version of the chapter goes beside it as 05_rope.new.ipynb, once.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path

from posviz.chapters import STEMS

HERE = Path(__file__).resolve().parent
NAMES = tuple(f"{number:02}_{stem}" for number, stem in enumerate(STEMS))
RECORD = ".posviz.json"


class Refused(Exception):
    """What cannot be done, in one sentence."""


def main(arguments=None):
    """Run the command with a list of `arguments` (default: those of the process); the exit status, 2 if refused."""
    arguments = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a Windows console or a pipe may lack the letters of a folder's name
    try:
        return test(arguments[1:]) if arguments[:1] == ["test"] else start(arguments)
    except Refused as sentence:
        print(f"posviz: {sentence}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def start(arguments):
    """posviz [FOLDER]: bring the chapters in the folder up to date and open JupyterLab there."""
    parser = argparse.ArgumentParser(
        prog="posviz",
        usage="posviz [FOLDER] [--no-browser | --copy-only]\n       posviz test [CHAPTER ...]",
        description="Copy the chapters into a folder of your own and open JupyterLab there. What you wrote stays.",
        epilog="'posviz test' runs the chapters as they were delivered and compares every text output.",
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path("posviz-course"), help="default: posviz-course")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--no-browser", action="store_true", help="start JupyterLab and print its address only")
    how.add_argument("--copy-only", action="store_true", help="copy the chapters and stop")
    options = parser.parse_args(arguments)
    folder = Path(os.path.abspath(options.folder.expanduser()))
    if folder.is_file():
        raise Refused(f"{folder} is a file; name a folder: posviz FOLDER")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for sentence in [] if folder.samefile(chapters()) else bring(folder):
            print(sentence)
    except OSError as error:
        raise Refused(f"cannot write into {folder} ({error.strerror}); name another: posviz FOLDER") from None
    print(f"The chapters are in {folder}", flush=True)
    return None if options.copy_only else open_lab(folder, not options.no_browser)


def chapters():
    """The folder of the chapters as delivered: in an installed package inside it, in a repository beside it."""
    installed = HERE / "notebooks"
    return installed if installed.is_dir() else HERE.parent / "notebooks"


def bring(folder):
    """Put every chapter into `folder` that is not there in this version; yields a sentence for each that replaces one.

    Raises OSError where the folder cannot be written, even if nothing has to be.
    """
    tempfile.TemporaryFile(dir=folder).close()
    try:
        record = dict(json.loads((folder / RECORD).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        record = {}  # then every file that differs is the learner's
    before = dict(record)
    for name in NAMES:
        if sentence := put(folder, name, (chapters() / f"{name}.ipynb").read_bytes(), record):
            yield sentence
    if record != before:
        replace(folder / RECORD, json.dumps(record, indent=1).encode())


def put(folder, name, content, record):
    """Put one chapter into `folder` and its digest into `record`; the sentence to say, or None.

    It goes to 05_rope.ipynb or, where that is the learner's, to 05_rope.new.ipynb, or to 05_rope.new.new.ipynb …
    """
    new = hashlib.sha256(content).hexdigest()
    for number in count():
        file = folder / f"{name}{'.new' * number}.ipynb"
        known, there = record.get(file.name), digest(file)
        if there == new or known == new and (there or number):  # this version, or what the learner made of it
            record[file.name] = new
            return None
        if there in (None, known):
            replace(file, content)
            record[file.name] = new
            if number:
                return f"{name}.ipynb is as you left it; the new version of the chapter is beside it: {file.name}"
            return there and f"{name}.ipynb is the new version of the chapter now; you had not changed the old one"


def digest(file):
    """The SHA-256 of a file's content, None if there is no file, "?" if it cannot be read (then it is left alone)."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None
    except OSError:
        return "?"


def replace(file, content):
    """Write a file in one step: whoever reads it, or stops us, finds the old content or the new."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    part.write_bytes(content)
    os.replace(part, file)


def open_lab(folder, browser):
    """JupyterLab over `folder`, for this machine alone, without its question about news; returns when it is stopped."""
    paths = [str(HERE / "jupyter"), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, paths))
    from jupyterlab.labapp import LabApp  # after the path: Jupyter may read it at import

    options = ["--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={folder}"]
    if not browser:
        options.append("--ServerApp.open_browser=False")
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # in a container; Windows has no such user
        options.append("--ServerApp.allow_root=True")
    LabApp.launch_instance(options)


def test(arguments):
    """posviz test [CHAPTER ...]: strict nbval over fresh copies in a temporary folder; 1 if a chapter fails."""
    parser = argparse.ArgumentParser(
        prog="posviz test", description="Run chapters as they were delivered and compare every text output."
    )
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help=f"of {', '.join(NAMES)} (default: all)")
    names = parser.parse_args(arguments).chapters or NAMES
    for unknown in set(names) - set(NAMES):
        raise Refused(f"there is no chapter {unknown!r}; the chapters are {', '.join(NAMES)}")
    import matplotlib.font_manager  # noqa: F401  (finds the fonts once; a kernel that has to do it says so in its output)

    failed = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a kernel's folder is locked on Windows
        for name in names:
            print(f"{name} ... ", end="", flush=True)
            run = check(name, Path(folder))
            print("failed" if run.returncode else "passed", flush=True)
            if run.returncode:
                print(run.stdout)
                failed.append(name)
    print(f"{len(names) - len(failed)} passed, {len(failed)} failed")
    return int(bool(failed))


def check(name, folder):
    """Run a fresh copy of a chapter in `folder` under strict nbval; the finished process."""
    (folder / f"{name}.ipynb").write_bytes((chapters() / f"{name}.ipynb").read_bytes())
    (folder / "pytest.ini").write_text("[pytest]\n")  # no settings from the folders above
    command = "-m pytest -q -p no:cacheprovider --nbval --nbval-current-env --nbval-cell-timeout 120".split()
    # One thread: the same rounding everywhere. UTF-8: whatever the console of Windows is set to.
    settings = {"OMP_NUM_THREADS": "1", "PYTHONUTF8": "1", "PYTEST_ADDOPTS": "", "IPYTHONDIR": str(folder / "ipython")}
    return subprocess.run(
        [sys.executable, *command, f"{name}.ipynb"],
        cwd=folder,
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )


if __name__ == "__main__":
    sys.exit(main())
