"""Exercises of chapter 7: slopes, reach, and what a flat loss does and does not say."""

import numpy as np

from posviz import alibi_slopes
from posviz.quiz import Bet, choice, function, number

HARD_WINDOW = Bet(
    "7.1",
    "RoPE trained on 128 bytes has a loss of 1.98 there and of 3.09 at 512. Now hide every key 64 or more back, with "
    "no training. What is the loss at 512 then?",
    ("higher still", "about 3.1", "about 2.5", "as low as at 128 bytes"),
    "as low as at 128 bytes",
    "It is 1.97 with the window, at 128 bytes it was 1.98 (first seed).",
)

FAR_COPY = Bet(
    "7.2",
    "ALiBi's model has learned to copy symbols from 8 to 64 back. How many does it copy right from 256 back?",
    ("as many as from 48 back", "about six in ten", "one in ten", "no more than a guess"),
    "about six in ten",
    "0.59 and 0.60 from 256 back (two seeds), 0.86 and 0.88 from 48 back.",
)

ONE_NUMBER = number(
    "7.1",
    -40 / 32,
    (40 / 32, "The size is right. The bias is a penalty: it is negative."),
    (-40 / 16, "That is the slope of head 4. Heads are counted from 1 here: head h of 8 has slope 2⁻ʰ."),
    (-40 / 64, "That is the slope of head 6. Heads are counted from 1 here: head h of 8 has slope 2⁻ʰ."),
    (-40 / 5, "The slope is not 1/5: slopes halve from head to head."),
    (-1 / 32, "That is the slope, the penalty for one step. The key stands 40 steps back."),
    (-40.0, "That is the distance. Multiply it by the slope of the head."),
    within=1e-6,
    right="Head 5 of 8 has slope 2⁻⁵ = 1/32, and 40 steps of 1/32 are 1.25.",
    nudge="How far apart are the two, and which slope has the head?",
    formula="The bias is −slope · distance, with slope 2⁻⁵ and distance 100 − 60.",
)

REACH = number(
    "7.2",
    np.ceil(64 * np.log(100)),
    (np.ceil(64 * np.log(2)), "That many hold half of the weight. How little may be left outside for 99 %?"),
    (64, "At distance 64 a key still has 1/e, 37 %, of the nearest key's weight. Go on until 1 % of the sum is left."),
    (np.ceil(64 * np.log10(100)), "That takes the logarithm to base 10. The weights are powers of e."),
    (np.ceil(np.log(100) / 64), "Divide by the slope: a flatter head reaches farther."),
    (np.ceil(0.99 * 2048), "That is the answer without a bias. The weights fall with each step."),
    within=2,
    right="ln(100) ÷ m = 4.605 · 64 = 295 tokens. A text of 2,048 tokens adds next to nothing to this head.",
    nudge="By which factor does the weight fall from one key to the next, and how much is left beyond the D nearest?",
    formula="The weights are e^(−distance/64). Beyond D the share e^(−D/64) of the whole is left: set it to 0.01.",
)

REASON = choice(
    "7.3",
    "b",
    right="A soft window: what lies beyond it has no say, whether the text is long or short.",
    a="RoPE and the T5 bias see the distance only as well, and their losses grow. See section 5.",
    c="The window experiment of section 5 cuts the far text off, and the loss stays the same.",
    d="The sinusoidal table is fixed too, and it breaks right after the trained length.",
)


def slopes(heads):
    """ALiBi's slopes in the order of the published models."""
    return alibi_slopes(heads)


def _powers(heads, first=1):
    return [2.0 ** (-8 * h / heads) for h in range(first, heads + first)]


def _mixed(heads, extra):
    """The slopes of the next smaller power of two, and the `extra` ones of the longer list behind them."""
    below = 1 << (heads.bit_length() - 1)
    return _powers(below) + _powers(2 * below)[extra][: heads - below]


ANY_NUMBER_OF_HEADS = function(
    "7.4",
    slopes,
    (_powers, "Right for powers of two. For 12 heads the published models do not use 2^(−8h/12): see section 2."),
    (lambda heads: _powers(heads, first=0), "h begins at 1. With h = 0 the first slope would be 1."),
    (lambda heads: [2.0**-h for h in range(1, heads + 1)], "That fits 8 heads. For H heads the exponent is −8h/H."),
    (lambda heads: _mixed(heads, slice(1, None, 2)), "The extra slopes begin with the first of the longer list."),
    (lambda heads: _mixed(heads, slice(None)), "Only every second slope of the longer list is new, not all of them."),
    (lambda heads: sorted(slopes(heads))[::-1], "The right numbers, but sorted: each trained head expects its own."),
    probes=[(8,), (1,), (2,), (12,), (5,), (40,)],
    right="The same list as in BLOOM, MPT and Baichuan-13B, for any number of heads.",
    nudge="What do the published models do when the number of heads is no power of two? See section 2.",
    formula="Let c be the largest power of two with c ≤ heads. Slopes of c heads, then every second slope of 2c heads.",
)

READ_A_MEASUREMENT = choice(
    "7.5",
    "d",
    right="Near text is enough for most letters. Only a task that needs far text shows whether the far part is in use.",
    a="A loss on 128 bytes says nothing about what happens beyond. And both are flat.",
    b="It is true that the loss is flat. But the second measurement says that the far token is not found.",
    c="A model that writes can be measured by other things than its loss: the copy task did.",
)
