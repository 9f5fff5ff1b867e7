"""Everything a reader can call, called once: {name: SHA-256 of what came out}, the same under whatever settings.

Run as a program, it prints that as JSON, of the pictures every fourth: `python tests/everything.py lab pictures`.
"""

import contextlib
import hashlib
import io
import json
import sys

import numpy as np
import torch

import posviz
from posviz import lab, quiz, views
from posviz.chapters import STEMS
from posviz.live import Drawing

LIBRARIES = {"numpy": np.asarray, "torch": lambda values: torch.from_numpy(np.asarray(values).copy())}


def formulas():
    """Every public function on NumPy arrays and, where it takes them, on torch tensors, hard places among them."""
    x = np.random.RandomState(0).normal(size=(2, 3, 8))
    far = [0, 1, 10**6 + 1, 2**40]
    found = {
        "alibi_bias": posviz.alibi_bias(6, 3, 5),
        "alibi_slopes": posviz.alibi_slopes(12),
        "deberta_index": posviz.deberta_index(5, 7, 3),
        "dynamic_ntk_base": posviz.dynamic_ntk_base(1e4, 5000, 2048, 128),
        "llama3_frequencies": posviz.llama3_frequencies(128),
        "ntk_base": posviz.ntk_base(1e4, 8, 128),
        "rope_frequencies": posviz.rope_frequencies(128),
        "rope_matrix": posviz.rope_matrix(10**6, 8),
        "wavelengths": posviz.wavelengths(128),
        "yarn_attention_factor": posviz.yarn_attention_factor(8),
        "yarn_frequencies": posviz.yarn_frequencies(128, 8, 4096),
    }
    for library, array in LIBRARIES.items():
        of = {
            "attention_entropy": posviz.attention_entropy(array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])),
            "attention_weights": posviz.attention_weights(
                array(300 * x), array(300 * x), bias=array(posviz.alibi_bias(2, 3)), temperature=0.5
            ),
            "deberta_terms": posviz.deberta_terms(array(x), array(x), array(x[:, :2]), array(x[:, 1:]), 1),
            "kerple_log_bias": posviz.kerple_log_bias(array(far), 1.5, 0.5),
            "kerple_power_bias": posviz.kerple_power_bias(array([0, 1, -5, 10**6]), 1.5, 2),
            "log_bucket": posviz.log_bucket(array([*far, -(2**40)]), 32, 512),
            "log_n_factor": posviz.log_n_factor(array(far[1:]), 128),
            "position_interpolation": posviz.position_interpolation(array([1.0, 1e-300]), 8),
            "relative_shift": posviz.relative_shift(array(x)),
            "rope": posviz.rope(array(x), array([[0, 10**6, 2**40]]), rotary_dim=4),
            "rope float32": posviz.rope(array(x.astype(np.float32)), [[0, 10**6, 2**40]], layout="half"),
            "sandwich_bias": posviz.sandwich_bias(array(far), 3),
            "sinusoidal": posviz.sinusoidal(array(far), 64),
            "softmax": posviz.softmax(array([[0.0, -800.0], [1.0, 2.0]]), array([[True, True], [False, False]])),
            "softmax float32": posviz.softmax(array(np.float32([0.0, -200.0, -np.inf]))),
            "t5_bucket": posviz.t5_bucket(array([*far, -3, -(2**40)])),
            "transformer_xl_terms": posviz.transformer_xl_terms(*map(array, (x, x, x, x[:, 0], x[:, 1]))),
            "xpos_scale": posviz.xpos_scale(array([0, -400, 10**5]), 64),
        }
        found |= {f"{name}, {library}": value for name, value in of.items()}
    return found


def the_lab():
    """Every function of the lab on a model."""
    rope, copier = lab.load("rope"), lab.load("kerple_log", "copy")
    found = {
        "loss_by_context": lab.loss_by_context(rope, [64, 200], change="yarn+log_n"),
        "loss_by_position": lab.loss_by_position(lab.load("learned"), 130, change="interpolate"),
        "attention": lab.attention(lab.load("xpos"), "a text, 狗咬人"),
        "entropy_by_length": lab.entropy_by_length(rope, [64], change=lab.Change("dynamic_ntk", 2), texts=1),
        "recall": lab.recall(copier, [16]),
        "minilm": lab.minilm(),
        "learned_table": lab.learned_table(),
        "results": lab.results(),
        "smollm2": lab.smollm2(),
    }
    for encoding in lab.ENCODINGS:
        found[f"train {encoding}"] = lab.train(encoding, steps=2).losses
    found["train, copy"] = lab.train("rope", steps=2, task="copy").losses
    return found


def exercises():
    """What every exercise says to the right answer, to each listed mistake and to one that is not listed."""
    found = {}
    for chapter in range(len(STEMS)):
        for exercise in quiz.exercises(chapter).values():
            for answer in (exercise.expected, *(mistake for mistake, _ in exercise.wrong), 987.25):
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    quiz.check(exercise.id, answer)
                found.setdefault(exercise.id, []).append(said.getvalue())
    return found


def pictures(between=lambda: None, every=1):
    """Every view, or one of so many: its still figure, its first and last state live, the words under them as pixels.

    `between` is called between any two of them, as a reader may do anything between two cells.
    """
    found = {}
    for kind in views.all_views()[::every]:
        view = kind()
        last = {control.name: control.corners()[-1] for control in view.controls}
        drawing = Drawing(view)
        between()
        drawing.figure.canvas.draw()
        found[f"{kind.__name__}, still"] = digest(np.asarray(drawing.figure.canvas.buffer_rgba()))
        for name, values in (("live", drawing.values), ("moved", last)):
            between()
            found[f"{kind.__name__}, {name}"] = digest(drawing.show(**values))
        between()
        found[f"{kind.__name__}, words"] = digest(drawing._caption(drawing.show(**last)[1]))
    for kind in views.all_views()[::12]:
        figure, explorer = kind().figure(), kind().explorer()
        between()
        found[f"{kind.__name__}, displayed"] = digest(
            [figure._repr_png_(), explorer.sentence, bytes(explorer.image.value)]
        )
        found[f"{kind.__name__}, stored"] = digest(explorer._repr_mimebundle_()[0]["image/png"])
    return found


PARTS = {"formulas": formulas, "lab": the_lab, "exercises": exercises, "pictures": pictures}


def digest(value):
    """SHA-256 of a result: of arrays and tensors also dtype and shape, of torch's also the device."""
    sha = hashlib.sha256()

    def add(value):
        if isinstance(value, (list, tuple)):
            sha.update(b"[%d" % len(value))
            for part in value:
                add(part)
        elif isinstance(value, dict):
            add([list(value), list(value.values())])
        elif isinstance(value, (np.ndarray, torch.Tensor)):
            sha.update(
                repr((type(value), str(value.dtype), tuple(value.shape), str(getattr(value, "device", "")))).encode()
            )
            sha.update(np.ascontiguousarray(value.numpy() if isinstance(value, torch.Tensor) else value).tobytes())
        else:
            sha.update(value if isinstance(value, bytes) else repr((type(value), value)).encode())

    add(value)
    return sha.hexdigest()


def digests(part, **keywords):
    found = PARTS[part](**keywords)
    return found if part == "pictures" else {name: digest(value) for name, value in found.items()}


if __name__ == "__main__":
    sample = {"pictures": {"every": 4}}
    print(json.dumps({part: digests(part, **sample.get(part, {})) for part in sys.argv[1:]}))
