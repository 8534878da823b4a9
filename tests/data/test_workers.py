"""Workers of loaders: the same batches as without, errors that name the item, none left behind."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

import gradtape as gt
from gradtape.data import DataLoader, Dataset, TensorDataset, item_rng

KINDS = ("threads", "processes")


class Noisy(Dataset):
    """Items with random numbers of their own, a large array among them."""

    def __len__(self):
        return 9

    def __getitem__(self, i):
        noise = i + item_rng().normal(size=3) + gt.randn(3).numpy()
        return {"noise": noise, "large": np.full(40_000, i), "name": str(i)}


class Failing(Dataset):
    """Cannot load item 5."""

    def __init__(self, error, *args):
        self.error, self.args = error, args

    def __len__(self):
        return 8

    def __getitem__(self, i):
        if i == 5:
            raise self.error(*self.args)
        return i


class UnpicklableError(Exception):
    """Cannot be made again from its arguments."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class Dying(Dataset):
    """Kills its own process at item 3."""

    def __len__(self):
        return 100

    def __getitem__(self, i):
        if i == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return i


class Slow(Dataset):
    """Has many items, each of which takes a while."""

    def __len__(self):
        return 10_000

    def __getitem__(self, i):
        time.sleep(0.002)
        return i


class Places(Dataset):
    """Tells whether its array is a view of a file, in the process that loads it."""

    def __init__(self, x):
        self.x = x

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        base = self.x
        while base is not None and not isinstance(base, np.memmap):
            base = base.base
        return self.x[i], os.getpid(), base is not None


def left_over():
    """Workers that are still there."""
    gc.collect()
    threads = [t for t in threading.enumerate() if t.name.startswith("gradtape-data")]
    return multiprocessing.active_children() + threads


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_those_without_workers(kind):
    def make(**options):
        return DataLoader(Noisy(), 2, shuffle=True, seed=3, **options)

    plain, loader = make(), make(num_workers=2, worker=kind)
    for one, other in zip(plain.epoch(1), loader.epoch(1), strict=True):
        np.testing.assert_array_equal(one["noise"], other["noise"])
        np.testing.assert_array_equal(one["large"], other["large"])
        assert one["name"] == other["name"]
        other["large"][0] = 0  # it is the loop's own
    resumed = list(loader.epoch(1, start=3))
    assert [batch["name"] for batch in resumed] == [b["name"] for b in plain.epoch(1)][3:]
    assert left_over() == []


@pytest.mark.parametrize("workers", [0, *KINDS])
def test_errors_name_the_item_and_keep_the_cause(workers):
    options = {"num_workers": 2, "worker": workers} if workers else {}
    loader = DataLoader(Failing(KeyError, "lost"), batch_size=2, **options)
    seen = []
    message = "item 5 for batch 2 of epoch 0: KeyError"
    with pytest.raises(gt.errors.DataError, match=message) as found:
        seen.extend(batch.tolist() for batch in loader)
    assert seen == [[0, 1], [2, 3]]
    assert isinstance(found.value.__cause__, KeyError)
    assert left_over() == []


@pytest.mark.slow
def test_causes_that_cannot_be_pickled_arrive_as_text():
    loader = DataLoader(Failing(UnpicklableError, "x", "y"), num_workers=1, worker="processes")
    with pytest.raises(gt.errors.DataError, match=r"item 5 .*UnpicklableError: x and y") as found:
        list(loader)
    assert "x and y" in str(found.value.__cause__)


def test_a_process_that_is_killed_raises_at_once():
    loader = DataLoader(Dying(), batch_size=2, num_workers=2, worker="processes")
    start = time.monotonic()
    with pytest.raises(gt.errors.WorkerError, match="was killed by signal 9"):
        list(loader)
    assert time.monotonic() - start < 20
    assert left_over() == []


@pytest.mark.parametrize("kind", KINDS)
def test_leaving_early_ends_the_workers(kind):
    loader = DataLoader(Slow(), batch_size=4, num_workers=2, worker=kind)
    for _ in loader:
        assert left_over() != []
        break
    assert left_over() == []


def test_an_interrupt_while_waiting_ends_the_workers():
    loader = DataLoader(Slow(), batch_size=200, num_workers=2, worker="threads")
    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    # A shell starts what runs in the background with interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            list(loader)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - start < 10
    assert left_over() == []


def test_threads_are_a_bounded_number_of_batches_ahead():
    asked = []

    class Counted(Slow):
        def __getitem__(self, i):
            asked.append(i)
            return i

    loader = DataLoader(Counted(), batch_size=1, num_workers=2, prefetch=3)
    walk = iter(loader)
    next(walk)
    time.sleep(0.2)
    assert len(asked) == 2 * 3 + 1
    walk.close()


def test_processes_open_mapped_files_again(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(600_000.0).reshape(-1, 6))
    mapped = np.load(path, mmap_mode="r")
    for x in (np.asarray(mapped)[10:, ::2].T[::-1].T, mapped[7:]):
        loader = DataLoader(
            gt.data.Subset(Places(x), [1, 50]), batch_size=2, num_workers=1, worker="processes"
        )
        ((rows, pids, are_mapped),) = loader
        np.testing.assert_array_equal(rows, x[[1, 50]])
        assert are_mapped.all()
        assert pids[0] != os.getpid()


def test_mapped_files_are_not_copied_to_processes(tmp_path):
    from gradtape.data import processes

    path = tmp_path / "x.npy"
    np.save(path, np.zeros((1000, 1000)))
    data = TensorDataset(np.load(path, mmap_mode="r"), np.arange(1000))
    assert len(processes._pickled(data)) < 20_000


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_tensors_in_tensors_out(kind):
    x, y = gt.randn((6, 20_000)), gt.arange(6)
    for data in (gt.data.TensorDataset(x, y), list(zip(x, y, strict=True))):
        loader = DataLoader(data, 4, shuffle=True, num_workers=2, worker=kind)
        for batch, other in zip(loader, DataLoader(data, 4, shuffle=True), strict=True):
            for one, alone in zip(batch, other, strict=True):
                assert type(one) is gt.Tensor
                np.testing.assert_array_equal(one.numpy(), alone.numpy())


def test_data_sets_that_cannot_be_pickled_are_refused():
    class Local(Slow):
        pass

    loader = DataLoader(Local(), num_workers=1, worker="processes")
    with pytest.raises(gt.GradtapeError, match='worker="threads"'):
        next(iter(loader))
    assert left_over() == []


@pytest.mark.slow
def test_a_script_without_a_guard_is_told(tmp_path):
    # Spawned processes import the script; without a guard they would spawn again, and fail.
    script = tmp_path / "train.py"
    script.write_text(
        "import gradtape as gt\n"
        "loader = gt.data.DataLoader([1, 2, 3], num_workers=1, worker='processes')\n"
        "list(loader)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "WorkerError" in done.stderr
    assert "__main__" in done.stderr


@pytest.mark.slow
def test_workers_end_when_the_program_is_killed(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import multiprocessing, sys, time\n"
        f"sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
        "import gradtape as gt\n"
        "from test_workers import Slow\n"
        "if __name__ == '__main__':\n"
        "    loader = gt.data.DataLoader(Slow(), 2, num_workers=2, worker='processes')\n"
        "    for _ in loader:\n"
        "        print(*(p.pid for p in multiprocessing.active_children()), flush=True)\n"
        "        time.sleep(60)\n"
    )
    program = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    pids = [int(pid) for pid in program.stdout.readline().split()]
    assert len(pids) == 2
    program.kill()
    program.wait()
    program.stdout.close()
    deadline = time.monotonic() + 20
    while any(is_running(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"
    return True
