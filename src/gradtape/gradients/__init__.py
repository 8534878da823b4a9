"""Tools for gradients: clipping, accumulation, statistics, noise, pipelines and compression."""

from gradtape.advice.public import make_public as _make_public
from gradtape.gradients.accumulation import (
    Accumulation as Accumulation,
    GradientAccumulator as GradientAccumulator,
    accumulate as accumulate,
)
from gradtape.gradients.autoclip import AutoClip as AutoClip
from gradtape.gradients.clipping import (
    adaptive_clip as adaptive_clip,
    clip_by_global_norm as clip_by_global_norm,
    clip_by_norm as clip_by_norm,
    clip_by_value as clip_by_value,
    global_norm as global_norm,
)
from gradtape.gradients.compression import (
    Compressed as Compressed,
    LowRank as LowRank,
    TopK as TopK,
)
from gradtape.gradients.leaf_statistics import (
    GradientStatistics as GradientStatistics,
    LeafStatistics as LeafStatistics,
    statistics as statistics,
)
from gradtape.gradients.noise import Noise as Noise, add_noise as add_noise
from gradtape.gradients.pipeline import Pipeline as Pipeline, StepReport as StepReport
from gradtape.gradients.step import Step as Step

_make_public(globals())
