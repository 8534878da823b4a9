"""Options of data sets, samplers and loaders that have no meaning."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    Subset,
    WeightedRandomSampler,
    random_split,
)

DATA = list(range(6))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 1.5}, "batch_size=1.5, expected an integer"),
        ({"batch_size": "2"}, "batch_size='2', expected an integer"),
        ({"shuffle": "no"}, "got 'no' for shuffle"),
        ({"drop_last": None}, "for drop_last"),
        ({"num_workers": 1.5}, "num_workers=1.5"),
        ({"prefetch": None, "num_workers": 1}, "prefetch=None"),
        ({"worker": ["threads"]}, "expected 'threads' or 'processes'"),
        ({"collate": "list"}, "got 'list' for collate"),
        ({"sampler": [1.5]}, r"float64 of shape \(1,\) as sampler, expected integers"),
        ({"sampler": [[1]]}, r"of shape \(1, 1\)"),
        ({"sampler": "abc"}, "as sampler"),
        ({"sampler": RandomSampler}, "got a type as sampler"),
        ({"sampler": SequentialSampler(9)}, "got item 6 of a data set of 6 items"),
        ({"batch_sampler": []}, "got a list as batch_sampler"),
        ({"batch_sampler": [[0, 1]]}, r"expected an object with len\(\) and batches\(epoch\)"),
    ],
)
def test_loaders(options, message):
    with pytest.raises(gt.GradtapeError, match=message):
        list(DataLoader(DATA, **options))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Subset(DATA, [1.5]), "expected integers along one axis"),
        (lambda: Subset(DATA, np.arange(6) > 2), "np.flatnonzero makes them of a mask"),
        (lambda: Subset(DATA, "ab"), "Subset: got an array"),
        (lambda: Subset(None, [1]), "a NoneType, expected a data set"),
        (lambda: ConcatDataset(None), "no data sets"),
        (lambda: ConcatDataset([DATA, 3]), "an int, expected a data set"),
        (lambda: random_split(DATA, "ab"), "lengths='ab', expected a list of numbers"),
        (lambda: random_split(DATA, 6), "lengths=6, expected a list"),
        (lambda: random_split(DATA, [6], seed="a"), "seed='a'"),
        (lambda: RandomSampler(None), "expected a data set"),
        (lambda: RandomSampler(6, num_samples=1.5), "num_samples=1.5"),
        (lambda: WeightedRandomSampler(["a"]), "expected one axis of finite weights"),
        (lambda: DistributedSampler(6, 1.5, 0), "num_replicas=1.5"),
        (lambda: DistributedSampler(6, 2, "a"), "rank='a'"),
        (lambda: BatchSampler("ab", 1), "as sampler"),
        (lambda: DataLoader(DATA).epoch("a").__next__(), "epoch='a'"),
        (lambda: gt.data.collate([gt.ones(2, requires_grad=True)]), "requires a gradient"),
        (lambda: gt.data.collate([1, "a"]), "items 0 and 1 of the batch are an int and a str"),
        (lambda: gt.data.collate([None, None]), "got None for each item .*__getitem__"),
        (lambda: gt.data.collate([1, object()]), "got an? object in item 1 of the batch"),
    ],
)
def test_data_sets_and_samplers(make, message):
    with pytest.raises(gt.GradtapeError, match=message):
        make()


@pytest.mark.parametrize("changes", [{"epoch": -1}, {"batch": 4}, {"batch": "a"}, {"order": 0}])
def test_states_that_are_none_change_nothing(changes):
    loader = DataLoader(DATA, 2)
    state = loader.state_dict()
    with pytest.raises(gt.GradtapeError):
        loader.load_state_dict(state | changes)
    assert loader.state_dict() == state


def test_fractions_of_numpy():
    assert [len(part) for part in random_split(DATA, np.array([0.5, 0.5], np.float32))] == [3, 3]
