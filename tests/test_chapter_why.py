"""What chapter 2 says beyond what its cells print: its mask, its T5 bucket, the loss without an encoding."""

import numpy as np

import notebooks
import posviz
import reading
from posviz.lab.results import loss

CELLS = {cell["id"]: notebooks.source(cell) for cell in notebooks.read(reading.CHAPTERS[2])["cells"]}


def test_a_causal_mask_shows_a_query_the_keys_up_to_itself():
    assert np.tri(6, dtype=bool).tolist() == [[n <= m for n in range(6)] for m in range(6)]


def test_on_paper_no_weight_is_zero_and_in_float32_some_are():
    assert posviz.softmax(np.array([0.0, -104.0]))[1] > 0
    assert posviz.softmax(np.array([0, -104], dtype=np.float32))[1] == 0
    assert np.exp(np.float32(-103)) > 0


def test_t5_gives_distances_19_and_20_one_number():
    buckets = posviz.t5_bucket(-np.arange(41), bidirectional=False)
    assert np.flatnonzero(buckets == buckets[20]).tolist() == [19, 20]


def test_the_mask_counts_only_if_the_first_token_differs():
    mask, zeros = np.tri(8, dtype=bool), np.zeros((8, 1))
    weights = posviz.attention_weights(zeros, zeros, mask=mask)
    np.testing.assert_allclose(1 / (weights @ np.eye(8)[0]) - 1, range(8), atol=1e-12)
    assert np.ptp(weights @ np.ones(8)) < 1e-12


def test_our_model_without_an_encoding_is_the_last_at_its_trained_length():
    seeds = {seed for name, change, seed in loss if name == "none" and change is None}
    for seed in seeds:
        at_128 = {name: losses[0] for (name, change, of), losses in loss.items() if change is None and of == seed}
        assert max(at_128, key=at_128.get) == "none"
    assert "Far behind" in CELLS["nope-means"] and seeds
