"""Data sets, samplers and the order of loaders."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)


def arrays(n=10):
    return np.arange(2.0 * n).reshape(n, 2), np.arange(n)


def flat(loader, epoch=0):
    return [int(y) for _, ys in loader.epoch(epoch) for y in ys]


def test_batches_in_order_are_views_that_cannot_be_written():
    x, y = arrays()
    first, second = list(DataLoader(TensorDataset(x, y), batch_size=5))
    assert np.shares_memory(first[0], x)
    np.testing.assert_array_equal(second[0], x[5:])
    with pytest.raises(ValueError, match="read-only"):
        first[0][0] = 1
    assert x.flags.writeable


def test_shuffled_batches_pair_items_with_labels():
    x, y = arrays()
    for xs, ys in DataLoader(TensorDataset(x, y), batch_size=3, shuffle=True):
        np.testing.assert_array_equal(xs, x[ys])


def test_tensors_in_tensors_out():
    x, y = arrays()
    data = TensorDataset(gt.tensor(x), y)
    xs, ys = next(iter(DataLoader(data, batch_size=4, shuffle=True)))
    assert isinstance(xs, gt.Tensor)
    assert type(ys) is np.ndarray
    assert isinstance(data[3][0], gt.Tensor)


def test_order_is_a_function_of_seed_and_epoch_alone():
    def make(seed):
        return DataLoader(TensorDataset(*arrays()), 3, shuffle=True, seed=seed)

    loader, other = make(5), make(5)
    walked = [[int(y) for _, ys in loader for y in ys] for _ in range(3)]
    assert walked == [flat(other, epoch) for epoch in range(3)]
    assert sorted(walked[0]) == list(range(10))
    assert walked[0] != walked[1]
    assert flat(make(6)) != flat(make(5))


def test_order_of_seed_zero_never_changes():
    # Runs that are resumed with a later release depend on it.
    assert RandomSampler(10, seed=0).order(0).tolist() == [6, 3, 8, 1, 4, 5, 9, 2, 7, 0]
    assert RandomSampler(6, True, seed=3).order(2).tolist() == [3, 2, 1, 1, 1, 1]


def test_iterating_counts_epochs_and_epoch_does_not():
    loader = DataLoader(TensorDataset(*arrays()), 4, shuffle=True)
    list(loader.epoch(7))
    assert loader.next_epoch == 0
    for _ in loader:
        break
    assert loader.next_epoch == 1
    loader.set_epoch(9)
    assert [int(y) for _, ys in loader for y in ys] == flat(loader, 9)


@pytest.mark.parametrize("taken", [0, 1, 2, 4])
def test_state_continues_in_the_middle(taken):
    def make():
        return DataLoader(TensorDataset(*arrays()), 3, shuffle=True, seed=1)

    loader = make()
    list(loader)
    walk = iter(loader)
    for _ in range(taken):
        next(walk)
    state = loader.state_dict()
    rest = [ys.tolist() for _, ys in walk]
    again = make()
    again.load_state_dict(state)
    if taken:
        assert [ys.tolist() for _, ys in again] == rest
        assert [ys.tolist() for _, ys in again] == [ys.tolist() for _, ys in loader]
    else:
        assert state["epoch"] == 1


def test_state_of_other_batches_is_refused():
    data = TensorDataset(*arrays())
    state = DataLoader(data, 3, shuffle=True).state_dict()
    for other in (DataLoader(data, 4, shuffle=True), DataLoader(data, 3, shuffle=True, seed=1)):
        with pytest.raises(gt.GradtapeError, match="batches of epoch 0 are others"):
            other.load_state_dict(state)


def test_subsets_and_concatenations_take_batches_at_once():
    x, y = arrays()
    data = TensorDataset(x, y)
    both = Subset(data, [9, 1, 4]) + TensorDataset(x + 100, y + 100)
    assert len(both) == 13
    assert both.batch is not None
    order = np.array([12, 0, 5, 2, 1, 3])
    one_by_one = [both[i] for i in order]
    xs, ys = both.batch(order)
    np.testing.assert_array_equal(xs, [item[0] for item in one_by_one])
    np.testing.assert_array_equal(ys, [item[1] for item in one_by_one])
    np.testing.assert_array_equal(both.batch(range(2, 5))[1], [4, 100, 101])
    assert ConcatDataset([data, [1, 2]]).batch is None
    assert Subset([1, 2], [1]).batch is None
    assert both[-1][1] == 109


def test_split_covers_all_items_once():
    parts = random_split(range(10), [0.55, 0.45])
    assert [len(part) for part in parts] == [6, 4]
    assert sorted(item for part in parts for item in part) == list(range(10))
    assert [len(part) for part in random_split(range(10), [7, 3])] == [7, 3]
    first, other = (random_split(range(10), [7, 3], seed=seed)[0] for seed in (0, 1))
    assert list(first) != list(other)


def test_items_are_put_together_in_their_containers():
    items = [{"x": np.full(2, i), "n": i, "name": str(i), "t": gt.tensor([1.0])} for i in range(3)]
    batch = next(iter(DataLoader(items, batch_size=3)))
    assert batch["x"].shape == (3, 2)
    assert batch["n"].tolist() == [0, 1, 2]
    assert batch["name"] == ["0", "1", "2"]
    assert isinstance(batch["t"], gt.Tensor)
    listed = next(iter(DataLoader(items, batch_size=3, collate=list)))
    assert listed == items
    for other, message in (
        ({"n": 1}, "a dict of 'n'"),
        (("a", 1), "a tuple of 2"),
        (None, "a NoneType"),
    ):
        with pytest.raises(gt.errors.DataError, match=f"1 of the batch differ, .* and {message};"):
            next(iter(DataLoader([items[0], other], batch_size=2)))


def test_weighted_samples_follow_their_weights():
    weights = np.array([0.0, 1.0, 2.0, 5.0, 0.0])
    counts = np.bincount(WeightedRandomSampler(weights, 20_000, seed=1).order(0), minlength=5)
    np.testing.assert_allclose(counts / 20_000, weights / 8, atol=0.015)
    sampler = WeightedRandomSampler(weights, 2, replacement=False)
    drawn = np.array([sampler.order(epoch) for epoch in range(2000)])
    assert (drawn[:, 0] != drawn[:, 1]).all()
    first = np.bincount(drawn[:, 0], minlength=5) / 2000
    np.testing.assert_allclose(first, weights / 8, atol=0.05)


def test_parts_of_distributed_samplers_make_the_whole():
    parts = [DistributedSampler(10, 3, rank).order(4) for rank in range(3)]
    assert {len(part) for part in parts} == {4}
    assert set(np.concatenate(parts)) == set(range(10))
    cut = [DistributedSampler(10, 3, rank, drop_last=True) for rank in range(3)]
    short = np.concatenate([sampler.order(4) for sampler in cut])
    assert len(set(short)) == len(short) == 9


def test_batches_of_your_own():
    class Pairs:
        def __len__(self):
            return 2

        def batches(self, epoch):
            return [np.array([epoch, 3]), np.array([2])]

    loader = DataLoader(TensorDataset(*arrays()), batch_sampler=Pairs())
    assert [ys.tolist() for _, ys in loader.epoch(1)] == [[1, 3], [2]]
    assert len(BatchSampler([3, 1, 2], 2, drop_last=True)) == 1
    assert [
        ys.tolist() for _, ys in DataLoader(TensorDataset(*arrays()), 2, sampler=[3, 1, 2])
    ] == [[3, 1], [2]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DataLoader([]), "empty data set"),
        (lambda: DataLoader(TensorDataset(np.ones((0, 2)))), "empty data set"),
        (lambda: DataLoader([1, 2], 3, drop_last=True), "2 items for batch_size=3 with drop_last"),
        (lambda: DataLoader((np.ones(2), np.ones(2))), r"TensorDataset\(x, y\)"),
        (lambda: DataLoader(iter([1])), "expected a data set"),
        (lambda: DataLoader([1], 0), "batch_size=0"),
        (lambda: DataLoader([1], worker="fork"), "'threads' or 'processes'"),
        (lambda: DataLoader([1], shuffle=True, sampler=[0]), "expected one of them"),
        (lambda: DataLoader([1], sampler=iter([0])), r"order\(epoch\)"),
        (lambda: list(DataLoader([1], sampler=[0, 1])), "item 1 of a data set of 1"),
        (lambda: DataLoader([1], seed=-1), "seed=-1"),
        (lambda: TensorDataset(), "no arrays"),
        (lambda: TensorDataset(np.ones(2), np.ones(3)), "2, 3 items"),
        (lambda: TensorDataset([1, 2]), "got a list as argument 0"),
        (lambda: TensorDataset(gt.tensor([1.0], requires_grad=True)), "requires a gradient"),
        (lambda: Subset([1, 2], [2]), "item 2 of a data set of 2"),
        (lambda: random_split([1, 2], [1]), "add up to 2"),
        (lambda: RandomSampler(2, num_samples=3), "replacement=True"),
        (lambda: WeightedRandomSampler([0.0, 0.0]), "not all zero"),
        (lambda: WeightedRandomSampler([1.0, 0.0], replacement=False), "1 items have a weight"),
        (lambda: DistributedSampler(4, 2, 2), "rank=2 of 2"),
        (lambda: gt.data.item_rng(), "no loader is loading"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(gt.GradtapeError, match=message):
        call()


def test_arrays_of_other_shapes_are_named():
    with pytest.raises(gt.errors.DataError, match=r"items 0 and 1 of the batch have shapes"):
        list(DataLoader([np.ones(2), np.ones(3)], batch_size=2))
