"""The stems of the chapters: a chapter's number is its place here.

Chapter n is `notebooks/0n_<stem>.ipynb`, its pictures are in `posviz/views/<stem>.py`, its exercises in
`posviz/quiz/<stem>.py`, and the tests of its pictures in `tests/test_views_<stem>.py`.
"""

STEMS = ("motivation", "what", "why", "absolute", "relative", "rope", "extrapolation", "alibi")
