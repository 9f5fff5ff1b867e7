"""What `import posviz` loads, and what it offers."""

import subprocess
import sys

import pytest

import posviz

HEAVY = ["torch", "matplotlib", "ipywidgets", "IPython", "scipy", "transformers"]
PUBLIC = """
alibi_bias alibi_slopes attention_entropy attention_weights deberta_index deberta_terms dynamic_ntk_base
kerple_log_bias kerple_power_bias llama3_frequencies log_bucket log_n_factor ntk_base position_interpolation
relative_shift rope rope_frequencies rope_matrix sandwich_bias sinusoidal softmax t5_bucket transformer_xl_terms
wavelengths xpos_scale yarn_attention_factor yarn_frequencies
"""


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_public_names():
    assert sorted(posviz.__all__) == PUBLIC.split()
    assert posviz.rope.__module__ == "posviz.rope"  # the name is the function, not the module
    assert run("from posviz.rope import rotate_pairs; print(rotate_pairs.__module__)") == "posviz.rope"


@pytest.mark.parametrize(
    "use",
    ["pass", "posviz.rope([1.0, 2, 3, 4], 1)", "posviz.attention_weights([[1.0]], [[1.0]])", "posviz.alibi_bias(4, 5)"],
)
def test_import_and_numpy_use_leave_heavy_packages_out(use):
    loaded = run(f"import sys, posviz; {use}; print(*[m for m in {HEAVY} if m in sys.modules])")
    assert loaded == ""


def test_numpy_side_works_where_torch_is_missing():
    block = "import sys; sys.modules['torch'] = None\n"
    assert run(block + "import posviz; print(posviz.rope([1, 2, 3, 4], 1).round(4).tolist())").startswith("[-1.1426")


@pytest.mark.parametrize("picture, option", [("LossAlongText", "encoding"), ("AlikeRows", "table")])
def test_pictures_of_recorded_losses_and_learned_tables_need_no_torch(picture, option):
    block = "import sys; sys.modules['torch'] = None\n"
    draw = f"view = views.{picture}()\nfor value in view.controls[0].options: view.figure({option}=value)\n"
    assert run(f"{block}from posviz import views\n{draw}print('drawn')") == "drawn"


@pytest.mark.parametrize("name", PUBLIC.split())
def test_every_public_name_says_what_it_is(name):
    text = getattr(posviz, name).__doc__
    assert len(text.split("\n")[0]) <= 121 and ">>> " in text
    assert "Source: " in text or name in ("softmax", "attention_entropy")
