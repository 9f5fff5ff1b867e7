"""Exercises of chapter 0: what a loss is, what gets lost without positions, what a longer text costs."""

from math import factorial

import numpy as np

from posviz.lab.results import loss, ratio
from posviz.quiz import Bet, choice, function, number

_GUESSES = np.array([0.5, 0.5, 0.125, 1.0])
_LOGS = np.log(_GUESSES)

LOSS_BY_HAND = number(
    "0.1",
    -_LOGS.mean(),
    (-_LOGS.sum(), "That is the sum. The loss is the mean over the four tokens."),
    (-np.log2(_GUESSES).mean(), "That is measured in bits, with the logarithm to base 2. Nats take the natural one."),
    (-np.log(_GUESSES.mean()), "That is the logarithm of the mean. The loss is the mean of the logarithms."),
    (_LOGS.mean(), "The size is right. Logarithms of probabilities are negative, and the loss is their opposite."),
    (-_LOGS.sum() / 3, "The certain guess counts too: it adds 0 to the sum, and 1 to the number of tokens."),
    (np.exp(-_LOGS.mean()), "That is the perplexity, e to the power of the loss."),
    within=0.005,
    right="(0.693 + 0.693 + 2.079 + 0) ÷ 4 = 0.866 nats. The certain guess costs nothing.",
    nudge="Each token has a loss of its own, made from its probability. How do the four become one?",
    formula="Take −ln of each probability, add the four and divide by 4.",
)

BITTEN_DOG = choice(
    "0.2",
    "c",
    right="Both vectors of every word are the same, so nothing that is computed from them can tell the texts apart.",
    a="Each word asks anew, but the same words answer with the same vectors. Compare the numbers in section 2.",
    b="A sum over all words is the same in any order. Compare the numbers in section 2.",
)

EIGHT_TIMES_AS_LONG = number(
    "0.3",
    64,
    (8, "That is how many times as many tokens. Each of them is also compared with more others."),
    (16, "Twice 8 is not 8 squared: every token is compared with every token."),
    (32768**2, "That is the number of pairs in the long text. How many times the number in the short one?"),
    (1 / 64, "The other way round: the long text has more pairs."),
    right="Eight times as many tokens, each compared with eight times as many: 8 × 8.",
    nudge="How many comparisons do n tokens make, when each is compared with each?",
    formula="n tokens make n × n pairs. Divide 32,768² by 4,096².",
)

TEXTS_THAT_ARE_ONE = number(
    "0.4",
    factorial(5) // 2,
    (factorial(5), "The word “the” occurs twice. Swap the two, and the text is the same: each was counted twice."),
    (factorial(4), "There are four different words but five places to fill."),
    (5**5, "That lets a word occur as often as you like. Each of the five is used once."),
    (2, "There are many more orders, most of them no good English."),
    right="120 orders, and swapping the two “the” makes no new text: 60. A model without positions sees one.",
    nudge="In how many orders can five words stand, and which of these orders look the same?",
    formula="Five words stand in 5! orders. Divide by the number of ways to put the two “the” in their places.",
)


def growth(loss, trained):
    """Mean loss from position `trained` on, over the mean loss before it."""
    return np.mean(loss[trained:]) / np.mean(loss[:trained])


GROWTH_OF_THE_LOSS = function(
    "0.5",
    growth,
    (lambda loss, t: 1 / growth(loss, t), "Upside down: a loss that grows should give more than 1."),
    (lambda loss, t: sum(loss[t:]) / sum(loss[:t]), "Sums grow with the number of positions. Compare the means."),
    (lambda loss, t: np.mean(loss) / np.mean(loss[:t]), "The first mean should hold the new positions only."),
    (lambda loss, t: growth(loss, t + 1), "Off by one: positions start at 0, so `trained` is the first new one."),
    (lambda loss, t: loss[-1] / loss[0], "One position is chance. Compare means over all new and all other ones."),
    (lambda loss, t: loss[t:].mean() - loss[:t].mean(), "That is the difference. Asked for is the ratio."),
    probes=[(np.array([2.0, 2, 1, 3, 4]), 3), (np.linspace(1, 3, 40), 8), (np.full(10, 1.5), 4)],
    right="1 means that the loss stays as it was; for the model with RoPE it is close to 2.",
    nudge="Which positions has the model not met in training, and what are they compared with?",
    formula="The mean of loss[trained:] over the mean of loss[:trained].",
)

SQUARE = Bet(
    "0.1",
    "LLaMA-7B was trained on 2,048 tokens. How much work do the comparisons add to the rest of its work?",
    ("about 4 %", "about 40 %", "about 400 %"),
    "about 4 %",
    "The comparisons come to 4 % at 2,048 tokens, 16 % at 8,192 and 64 % at 32,768.",
)

LONG_TEXT = Bet(
    "0.2",
    "A text of 1,024 bytes, 8 times the trained length: which of the three goes on as before?",
    ("learned table", "RoPE", "ALiBi"),
    "ALiBi",
    f"The loss at 1,024 bytes is {ratio['alibi', None, 1][2]:.2f} times that at 128 with ALiBi and "
    f"{ratio['rope', None, 1][2]:.2f} times with RoPE. The table has no vector for position 128.",
)

_SHORT, _LONG = loss["rope", None, 1][0], loss["rope", None, 1][2]
MORE_HELP = Bet(
    "0.3",
    "The model with RoPE predicts the same 64 bytes, with 448 bytes before them in place of 64. What does its loss do?",
    ("it falls: more help", "it stays", "it rises"),
    "it rises",
    f"From {_SHORT:.2f} to {_LONG:.2f} nats, although the task is the same and there is more to go by.",
)
