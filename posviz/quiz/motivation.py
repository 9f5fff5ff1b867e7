"""The exercises of chapter 0 (motivation): right answers from the definitions, wrong ones from likely mistakes."""

from math import factorial, log

import numpy as np

from posviz.quiz import choice, function, number

_PROBABILITIES = [0.5, 0.5, 0.125, 1.0]


def growth(loss, trained):
    """Mean loss from position `trained` on, over the mean loss before it."""
    return np.mean(loss[trained:]) / np.mean(loss[:trained])


EXERCISES = [
    number(
        "0.1",
        -np.mean(np.log(_PROBABILITIES)),
        within=0.005,
        right="(0.693 + 0.693 + 2.079 + 0) ÷ 4 = 0.866 nats. The certain guess costs nothing.",
        wrong=[
            (-np.sum(np.log(_PROBABILITIES)), "That is the sum. The loss is the mean over the four tokens."),
            (
                -np.mean(np.log2(_PROBABILITIES)),
                "That is measured in bits, with the logarithm to base 2. Here it is the natural one.",
            ),
            (
                -log(np.mean(_PROBABILITIES)),
                "First the logarithm of each, then the mean: the logarithm of the mean is another number.",
            ),
            (
                np.mean(np.log(_PROBABILITIES)),
                "The size is right. Logarithms of probabilities are negative, and the loss is their opposite.",
            ),
            (
                -np.sum(np.log(_PROBABILITIES)) / 3,
                "The certain guess counts too: it adds 0 to the sum, and 1 to the number of tokens.",
            ),
        ],
        otherwise="Take −ln of each probability, add the four and divide by 4.",
    ),
    choice(
        "0.2",
        "c",
        options=["a", "b", "c"],
        right="The two vectors of every word are the same, so nothing that is computed from them can tell the texts "
        "apart.",
        wrong={
            "a": "Each word asks anew, but it is answered by the same words with the same vectors: compare the numbers "
            "in section 2.",
            "b": "The order decides nothing here: the sum over all words is the same in any order. Compare the numbers "
            "in section 2.",
        },
    ),
    number(
        "0.3",
        64,
        within=0,
        right="Eight times as many tokens, each compared with eight times as many: 8 × 8.",
        wrong=[
            (8, "That is how many times as many tokens. Each of them is also compared with 8 times as many others."),
            (16, "Twice 8 is not 8 squared: every token is compared with every token."),
            (32768**2, "That is the number of pairs in the long text. Divide it by the number in the short one."),
            (1 / 64, "The other way round: the long text has more pairs."),
        ],
        otherwise="n tokens make n × n pairs. Divide 32,768² by 4,096².",
    ),
    number(
        "0.4",
        factorial(5) // 2,
        within=0,
        right="5 words can be put in order in 120 ways, and swapping the two “the” makes no new text: 60. All 60 are "
        "one to a model without positions.",
        wrong=[
            (
                factorial(5),
                "The word “the” occurs twice. Swap the two, and the text is the same: each was counted twice.",
            ),
            (factorial(4), "There are four different words but five places to fill."),
            (5**5, "That lets a word occur as often as you like. Each of the five is used once."),
            (2, "There are many more orders, most of them no good English."),
        ],
        otherwise="Five words can be put in order in 5! = 120 ways. How many of these look the same, since “the” "
        "occurs twice?",
    ),
    function(
        "0.5",
        growth,
        probes=[([2.0, 2.0, 1.0, 3.0, 4.0], 3), (list(np.linspace(1, 3, 40)), 8), ([1.5] * 10, 4)],
        right="1 means that the loss stays as it was; for the model with RoPE it is close to 2.",
        wrong=[
            (
                lambda loss, trained: np.mean(loss[:trained]) / np.mean(loss[trained:]),
                "Upside down: a loss that grows should give more than 1.",
            ),
            (
                lambda loss, trained: np.sum(loss[trained:]) / np.sum(loss[:trained]),
                "Sums grow with the number of positions. Compare the means.",
            ),
            (
                lambda loss, trained: np.mean(loss) / np.mean(loss[:trained]),
                "The first part must hold the new positions only: from `trained` on.",
            ),
            (
                lambda loss, trained: np.mean(loss[trained + 1 :]) / np.mean(loss[: trained + 1]),
                "Off by one: positions start at 0, so position `trained` is the first new one.",
            ),
            (
                lambda loss, trained: loss[-1] / loss[0],
                "One position is chance. Take the mean over all new positions, and over all trained ones.",
            ),
            (
                lambda loss, trained: np.mean(loss[trained:]) - np.mean(loss[:trained]),
                "That is the difference. Asked for is how many times as large.",
            ),
        ],
        otherwise="np.mean(loss[trained:]) holds the new positions. What is it to be divided by?",
    ),
]
