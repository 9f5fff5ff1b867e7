"""What keeps the code easy to take over: imports without circles, functions and pictures that can be read at once."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = {file: file.relative_to(ROOT) for file in (ROOT / "posviz").rglob("*.py")}


def dotted(file):
    """The name under which Python imports a file of the package."""
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


MODULES = {dotted(path): file for file, path in FILES.items()}


def imported(name):
    """The modules of the package that a module imports anywhere, inside functions too.

    `from posviz import rope` means the module posviz.rope where there is one, and the package itself where not. Python
    runs the packages above a module before it as well: that is no import of the module's own.
    """
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            source = ".".join([*above, node.module] if node.module else above)
            inside = [f"{source}.{alias.name}" for alias in node.names]
            yield from (module if module in MODULES else source for module in inside)


def only_hands_on(name):
    """Whether a module is an `__init__` that defines nothing: it shows names of the package's modules as its own."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    parts = (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign)
    return MODULES[name].name == "__init__.py" and all(isinstance(node, parts) for node in tree.body)


def test_no_modules_import_each_other_in_a_circle():
    graph = {name: {found for found in imported(name) if found in MODULES} for name in MODULES}
    for name in filter(only_hands_on, MODULES):  # who asks it for a name asks one of its modules
        graph[name] = set()
    while leaves := {name for name, needs in graph.items() if not needs}:
        graph = {name: needs - leaves for name, needs in graph.items() if name not in leaves}
    assert not graph, f"a circle among, or above one of, {sorted(graph)}"


def size(node, text):
    """Non-blank lines of a function or class, its docstring with it."""
    return sum(bool(line.strip()) for line in text.splitlines()[node.lineno - 1 : node.end_lineno])


@pytest.mark.parametrize("folder", ["posviz", "tools", "experiments", "benchmarks"])
def test_no_function_is_longer_than_forty_lines(folder):
    long = {}
    for file in (ROOT / folder).rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and size(node, text) > 40:
                long[f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"] = size(node, text)
    assert not long


def test_no_picture_is_longer_than_seventy_five_lines():
    long = {}
    for file in (ROOT / "posviz" / "views").glob("*.py"):
        text = file.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and size(node, text) > 75:
                long[f"{file.name} {node.name}"] = size(node, text)
    assert not long
