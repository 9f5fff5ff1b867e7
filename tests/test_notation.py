"""docs/notation.md holds: symbols and terms are listed, defined once, not used before that, and spelled one way."""

import re

import pytest

import notebooks
import pages
import reading

NOT_YET = set()  # chapters of the first edition; one that is rewritten leaves this list
EVERYDAY = {  # words with a life outside: a sentence may use them before a chapter makes terms of them
    *(
        "base",
        "bias",
        "bucket",
        "decoder",
        "distance",
        "encoder",
        "fixed",
        "frequency",
        "head",
        "input",
        "key",
        "layer",
    ),
    *("learned", "output", "pair", "penalty", "query", "relative", "absolute", "rotation", "score", "segment", "slope"),
    *("temperature", "value", "width", "window", "clip", "prior", "reach", "permutation", "oscillates", "ramp"),
}
GREEK = (
    *("alpha", "beta", "gamma", "delta", "Delta", "epsilon", "zeta", "theta", "lambda", "mu", "pi", "rho", "sigma"),
    *("tau", "phi", "varphi", "psi", "omega"),
)
QUERY_TRANSPOSED = r"\b[qxp](_\{?[^{}$ ]*\}?)?\s*\^\{?(\\top|T)\}?\s*(\\|W|k|R|f)"
FORBIDDEN = {  # pattern: what to write
    r"\bcomponents?\b": "feature",
    r"\bangular\b": "frequency, in radians a token",
    r"\b(position|positional) embeddings?\b": "positional encoding",
    r"\b\d[\d,.]*\s?[kMG]B\b|\b[MG]B\b": "MiB or GiB",
    r"\\omega|ω": r"\theta",
    QUERY_TRANSPOSED: r"rows: q\,k^\top",
    r"q[ᵀ⊤]k": r"rows: q kᵀ",
    r"e\^\{\s*-?\s*i\b(?!\s*\\)|\be\^i\b": r"\mathrm{j} for the imaginary unit",
    r"(?<![\w^])n\s*[-−]\s*m\b|\b[ij]\s*[-−]\s*[ij]\b": "m − n, query minus key",
    r"\bkey (position )?(minus|−) (the )?query\b": "query minus key",
    r"\bm\s*=\s*(1/|2\^|0?\.\d)|\\tfrac1?m": r"\alpha_h for a slope",
    r"\b(simply|obviously|just)\b": "nothing",
}


def prose(chapter):
    """The chapter's sentences as the reader meets them: [(cell number, text)].

    Left out: headings, speaker notes, code, formulas, titles in italics and the addresses of links. The cells before
    the first code cell, which list what is to come, have negative numbers.
    """
    for number, text in markdown(chapter):
        for unread in (r"\$\$.*?\$\$", r"\$[^$\n]*\$", r"^#[^\n]*", r"\]\([^)]*\)", r"<[^>]*>"):
            text = re.sub(unread, " ", text, flags=re.S | re.M)
        yield number, re.sub(r"(?<![*\w])\*(?!\*)[^*\n]+\*(?!\*)", " ", text)


def markdown(chapter):
    """[(cell number, source without code)] of a chapter's cells of text, speaker notes left out."""
    cells = notebooks.read(reading.CHAPTERS[chapter])["cells"]
    start = next(number for number, cell in enumerate(cells) if cell["cell_type"] == "code")
    for number, cell in enumerate(cells, -start):
        if cell["cell_type"] == "markdown" and cell["metadata"]["slideshow"]["slide_type"] != "notes":
            yield number, re.sub(r"```.*?```|`[^`\n]*`", " ", notebooks.source(cell), flags=re.S)


def code(chapter):
    return [
        notebooks.source(cell)
        for cell in notebooks.read(reading.CHAPTERS[chapter])["cells"]
        if cell["cell_type"] == "code"
    ]


def rows(columns):
    """Rows of the page's tables that have so many columns and a chapter in the last."""
    text = (pages.ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
    found = [[part.strip() for part in line.strip("|").split(" | ")] for line in text.splitlines() if line[:2] == "| "]
    return [row for row in found if len(row) == columns and re.fullmatch(r"[0-7]", row[-1])]


SYMBOLS = [row for row in rows(4) if row[0].startswith("$")]
TERMS = [(row[0], int(row[3])) for row in rows(4) if not row[0].startswith("$")]
PROSE = {chapter: list(prose(chapter)) for chapter in range(8)}


def listed_symbols(chapter):
    """The symbols that a chapter may use: the shared ones of its own and of earlier chapters, and its own."""
    text = (pages.ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
    shared, _ = text.split("### Symbols of one chapter")
    found = set()
    for names, *_, first in SYMBOLS:
        if int(first) == chapter or (names in shared and int(first) < chapter):
            found |= {symbol for name in re.findall(r"\$([^$]+)\$", names) for symbol in symbols(name)}
    return found


def symbols(formula):
    r"""The symbols of a formula: letters, Greek letters, and \mathrm{j}; words and functions are none."""
    found = {r"\mathrm{j}"} & set(re.findall(r"\\mathrm\{j\}", formula))
    formula = re.sub(r"\\(text|mathrm|operatorname|tag)\*?\{[^}]*\}|\\(begin|end)\{\w+\}(\{[lcr]+\})?", " ", formula)
    names = re.findall(r"\\([A-Za-z]+)", formula)
    return (
        found
        | {"\\" + name for name in names if name in GREEK}
        | set(re.findall(r"[A-Za-z]", re.sub(r"\\[A-Za-z]+", " ", formula)))
    )


def formulas(chapter):
    for number, text in markdown(chapter):
        yield from ((number, found) for found in re.findall(r"\$\$.*?\$\$|\$[^$\n]+\$", text, flags=re.S))


def unlisted_symbols(chapter):
    allowed = listed_symbols(chapter)
    return [
        f"cell {number}: {sorted(symbols(f) - allowed)} in {f}"
        for number, f in formulas(chapter)
        if symbols(f) - allowed
    ]


def word(term):
    return re.escape(term).replace(r"\ ", r"\s+")


def first(pattern, chapter, opening):
    """(cell, place in it) of the pattern's first appearance, the opening counted or not; None if there is none."""
    for number, text in PROSE[chapter]:
        if (opening or number >= 0) and (found := re.search(pattern, text, re.I)):
            return number, found.start()
    return None


def badly_defined_terms(chapter):
    """Terms of this chapter that it does not define, or uses before; terms of others that it defines once more."""
    for term, home in TERMS:
        defined = first(rf"\*\*{word(term)}(s|es)?\*\*", chapter, opening=True)
        used = first(rf"(?<![\w*-]){word(term)}(s|es)?(?![\w-])", chapter, opening=False)
        if home == chapter and not defined:
            yield f"**{term}** is not defined"
        elif home == chapter and used and used < defined:
            yield f"{term!r} in cell {used[0]}, before its definition in cell {defined[0]}"
        elif home != chapter and defined and defined[0] >= 0:
            yield f"**{term}** is defined in chapter {home} already, and again in cell {defined[0]}"


def terms_before_their_chapter(chapter):
    """Terms of later chapters whose first line in the course names no chapter to look in."""
    for term, home in TERMS:
        early = [(place, line) for place in range(min(chapter + 1, home)) for line in lines_with(term, place)]
        if early and term not in EVERYDAY and early[0][0] == chapter and "chapter" not in early[0][1].lower():
            yield f"{term!r}, a term of chapter {home}: {early[0][1].strip()[:80]}"


def lines_with(term, chapter):
    """The lines of a chapter, from its first code cell on, that use a term."""
    pattern = rf"(?<![\w*-]){word(term)}(s|es)?(?![\w-])"
    lines = (line for number, text in PROSE[chapter] if number >= 0 for line in text.splitlines())
    return [line for line in lines if re.search(pattern, line, re.I)]


def forbidden_spellings(chapter):
    sources = [("formula", f) for _, f in formulas(chapter)] + [("text", text) for _, text in PROSE[chapter]]
    sources += [("code", re.sub(r"t5_bucket\([^)]*\)", "", source)) for source in code(chapter)]  # it takes n − m
    for kind, source in sources:
        for pattern, right in FORBIDDEN.items():
            for found in re.finditer(pattern, source):
                yield f"{kind}: {found[0]!r}, write {right}: {source[max(0, found.start() - 40) : found.end() + 20]!r}"


def no_link_to_the_page(chapter):
    opening = "".join(notebooks.source(cell) for cell in notebooks.read(reading.CHAPTERS[chapter])["cells"][:3])
    if not re.search(r"\*\*Conventions\*\*:.*\]\(\.\./docs/notation\.md\)", opening):
        yield "the line **Conventions** does not link to ../docs/notation.md"


def the_source_document(chapter):
    """It is introduced in chapter 0; the other chapters stand alone."""
    for number, text in PROSE[chapter]:
        if chapter and re.search("source document", text, re.I):
            yield f"cell {number} speaks of the source document"


def minutes(chapter):
    path = reading.CHAPTERS[chapter]
    if f"**Time**: {reading.sentence(path)}" not in notebooks.source(notebooks.read(path)["cells"][1]):
        yield f"not {reading.sentence(path)!r}; `python tools/reading.py --write` puts it there"


def wrong_years(chapter):
    """A paper has the year of its arXiv number, so that it has the same one everywhere."""
    for _, text in markdown(chapter):
        for year, number in re.findall(r"\((20\d\d)\)(?:(?!\(20\d\d\)|\n).)*?arXiv (\d{4})\.\d{4,5}", text):
            if year[2:] != number[:2]:
                yield f"({year}), arXiv {number}"


def too_many_predictions(chapter):
    if (count := reading.predictions(reading.CHAPTERS[chapter])) > 8:
        yield f"{count} predictions"


RULES = (
    *(unlisted_symbols, badly_defined_terms, terms_before_their_chapter, forbidden_spellings, no_link_to_the_page),
    *(the_source_document, minutes, wrong_years, too_many_predictions),
)


@pytest.mark.parametrize("chapter", range(8))
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_chapter_keeps_to_the_page(rule, chapter):
    wrong = list(rule(chapter))
    if wrong and chapter in NOT_YET:
        pytest.xfail(f"chapter {chapter} is of the first edition:\n" + "\n".join(wrong))
    assert not wrong, "\n".join(wrong)


def test_the_page_has_each_term_and_each_symbol_once_in_both_languages():
    terms = [term.lower() for term, _ in TERMS]
    assert len(terms) == len(set(terms)) >= 80
    assert len(SYMBOLS) >= 25 and len({(row[0], row[3]) for row in SYMBOLS}) == len(SYMBOLS)
    assert all(re.search(r"[A-Za-z一-鿿]", part) for row in rows(4) for part in row[1:3])


def test_the_teachers_page_tells_the_minutes_of_the_rule():
    page = reading.TEACHING.read_text(encoding="utf-8")
    for number, path in enumerate(reading.CHAPTERS):
        line, filled = reading.table(path)
        assert line.search(page) and (number in NOT_YET or line.sub(filled, page) == page), path.stem


def test_the_course_is_a_third_shorter():
    total = sum(map(reading.words, reading.CHAPTERS))
    if total > 21_000 and NOT_YET:
        pytest.xfail(f"{total} words on the main path")
    assert total <= 21_000


@pytest.mark.parametrize(
    "formula, found",
    [
        (r"q_m\,k_n^\top/\sqrt d", {"q", "m", "k", "n", "d"}),
        (r"e^{\mathrm{j}\,m\theta_i}", {"e", r"\mathrm{j}", "m", r"\theta", "i"}),
        (r"\mathrm{Attn}(PX)=\ln \text{loss}", {"P", "X"}),
    ],
)
def test_symbols_of_a_formula(formula, found):
    assert symbols(formula) == found


@pytest.mark.parametrize(
    "text, refused",
    [
        (r"q_m^\top k_n", True),
        (r"q_m k_n^\top", False),
        (r"x\,W_q W_k^\top x^\top", False),
        (r"p_m^\top W_q^\top W_k\,p_n", True),
        ("e^{i m}", True),
        ("10000^{-2i/d}", False),
        ("n-m", True),
        ("m - n", False),
        ("20 MB", True),
        ("20 MiB", False),
        ("the first component", True),
        ("adjust", False),
    ],
)
def test_spellings_are_told_apart(text, refused):
    assert any(re.search(pattern, text) for pattern in FORBIDDEN) == refused
