"""The pictures of the course, one small class each; `all_views()` lists them."""

# ruff: noqa: F401, I001  named for those who use them, in the order of the chapters
from posviz.views.motivation import WhoBitWhom, LossAlongText
from posviz.views.what import SlidingSentence, MovedScores, SortTheMethods
from posviz.views.why import ReorderedTokens, FirstTokenCounter, SwappedTokens
from posviz.views.absolute import TableThatLearns, AlikeRows, SinusoidalTable, OneComponent
from posviz.views.absolute import BinaryClock, DecayByDistance, ReadThePosition
from posviz.views.relative import ScoreTerms, RelativeShift, T5Buckets, PositionPart
from posviz.views.rope import TurningPair, ClockWall, RotationMatrix, ScoreByDistance, AnglesSeen, RopeAtScale
from posviz.views.rope import PatchesOfAnImage
from posviz.views.extrapolation import LossByLength, EntropyByLength, Spectrum, RealModel
from posviz.views.extrapolation import BiasShapes, XPosDecay, Needle, AttentionMicroscope
from posviz.views.alibi import BiasAndWeights, ReachAndSlope, EveryMethod, Workbench


def all_views():
    """Every view class of the course, in the order of the chapters; each is made without arguments."""
    return [view for view in globals().values() if isinstance(view, type)]
