"""Data for training: data sets, samplers, loaders, and handwritten digits."""

from gradtape.advice.public import make_public as _make_public
from gradtape.data.datasets import (
    ConcatDataset as ConcatDataset,
    Dataset as Dataset,
    Subset as Subset,
    TensorDataset as TensorDataset,
    random_split as random_split,
)
from gradtape.data.digits import Digits as Digits, load_digits as load_digits
from gradtape.data.item_rng import item_rng as item_rng
from gradtape.data.loader import DataLoader as DataLoader
from gradtape.data.samplers import (
    BatchSampler as BatchSampler,
    DistributedSampler as DistributedSampler,
    RandomSampler as RandomSampler,
    Sampler as Sampler,
    SequentialSampler as SequentialSampler,
    WeightedRandomSampler as WeightedRandomSampler,
)
from gradtape.data.stacking import collate as collate

_make_public(globals())
