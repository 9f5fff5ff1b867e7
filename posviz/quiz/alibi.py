"""The exercises of chapter 7 (ALiBi, summary): right answers from the formulas, wrong ones from likely mistakes."""

from math import ceil, log, log10

from posviz import alibi_slopes
from posviz.quiz import choice, function, number


def _powers(heads, first=1):
    return [2.0 ** (-8 * h / heads) for h in range(first, heads + first)]


def _below(heads):
    return 1 << (heads.bit_length() - 1)


EXERCISES = [
    number(
        "7.1",
        -40 / 32,
        within=1e-6,
        right="Head 5 of 8 has slope 2⁻⁵ = 1/32, and 40 steps of 1/32 are 1.25.",
        wrong=[
            (40 / 32, "The size is right. The bias is a penalty: it is negative."),
            (-40 / 16, "That is the slope of head 4. Heads are counted from 1 here: head h of 8 has slope 2⁻ʰ."),
            (-40 / 64, "That is the slope of head 6. Heads are counted from 1 here: head h of 8 has slope 2⁻ʰ."),
            (-40 / 5, "The slope is 2⁻⁵, not 1/5: slopes halve from head to head."),
            (-1 / 32, "That is the slope, the penalty for one step. The key stands 40 steps back."),
            (-40.0, "That is the distance. Multiply it by the slope of the head."),
        ],
        otherwise="The bias is −slope · distance, with slope 2⁻⁵ and distance 100 − 60.",
    ),
    number(
        "7.2",
        ceil(64 * log(100)),
        within=2,
        right="ln(100) ÷ m = 4.605 · 64 = 295 tokens. A text of 2,048 tokens adds next to nothing to this head.",
        wrong=[
            (
                ceil(64 * log(2)),
                "That many hold half of the weight. For 99 % the rest must be 1 in 100: ln 100 in place of ln 2.",
            ),
            (
                64,
                "At distance 64 a key still has 1/e, 37 %, of the nearest key's weight. Go on until 1 % of the sum is "
                "left.",
            ),
            (
                ceil(64 * log10(100)),
                "That takes the logarithm to base 10. The weights are powers of e: use the natural one.",
            ),
            (ceil(log(100) / 64), "Divide by the slope: a flatter head reaches farther."),
            (
                ceil(0.99 * 2048),
                "That would be the answer without a bias. The weights fall by a factor e^(−1/64) with each step.",
            ),
        ],
        otherwise="The weights are e^(−distance/64). Beyond distance D the share e^(−D/64) of the whole is left: set "
        "it to 0.01.",
    ),
    choice(
        "7.3",
        "b",
        options=["a", "b", "c", "d"],
        right="A soft window: what lies beyond it has no say, whether the text is long or short.",
        wrong={
            "a": "RoPE and the T5 bias see the distance only as well, and their losses grow. See section 5.",
            "c": "The window experiment of section 5 cuts the far text off, and the loss stays the same: it was hardly "
            "used.",
            "d": "Fixed numbers do not protect: the sinusoidal table is fixed too, and it breaks right after the "
            "trained length.",
        },
    ),
    function(
        "7.4",
        alibi_slopes,
        probes=[(8,), (1,), (2,), (12,), (5,), (40,)],
        right="The same list as in BLOOM, MPT and Baichuan-13B, for any number of heads.",
        wrong=[
            (
                _powers,
                "Right for powers of two. For 12 heads the published models do not use 2^(−8h/12): see section 2.",
            ),
            (lambda heads: _powers(heads, first=0), "h begins at 1. With h = 0 the first slope would be 1."),
            (
                lambda heads: [2.0**-h for h in range(1, heads + 1)],
                "That is the list for 8 heads. For H heads the exponent is −8h/H.",
            ),
            (
                lambda heads: _powers(_below(heads)) + _powers(2 * _below(heads))[1::2][: heads - _below(heads)],
                "The extra slopes are the first, third, fifth … of the longer list: [0::2], not [1::2].",
            ),
            (
                lambda heads: _powers(_below(heads)) + _powers(2 * _below(heads))[: heads - _below(heads)],
                "Every second slope of the longer list is taken: the others are in the shorter list already.",
            ),
            (
                lambda heads: sorted(alibi_slopes(heads), reverse=True),
                "The right numbers, sorted. Each head of a trained model expects its own: the extra ones come last.",
            ),
        ],
        otherwise="Let c be the largest power of two with c ≤ heads. Slopes of c heads first, then every second slope "
        "of 2c heads.",
    ),
    choice(
        "7.5",
        "d",
        options=["a", "b", "c", "d"],
        right="A flat loss needs no far text, because near text is enough for most letters. Only a task that cannot be "
        "solved nearby shows whether the far part is in use.",
        wrong={
            "a": "A loss on 128 bytes says nothing about what happens beyond. And both are flat.",
            "b": "It is true that the loss is flat. But the second measurement says that the far token is not found.",
            "c": "A model that writes can be measured by other things than its loss: the copy task did.",
        },
    ),
]
