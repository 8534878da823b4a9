"""A training to be killed, `killed_run.py FOLDER WAY EPOCHS`; prints a digest at its end."""

import hashlib
import sys

import numpy as np

import gradtape as gt
from gradtape import containers

EPOCHS = 3


class Net(gt.nn.Module):
    """A perceptron with dropout, and a buffer that counts its calls."""

    def __init__(self):
        self.hidden = gt.nn.Linear(4, 8)
        self.out = gt.nn.Linear(8, 1)
        self.register_buffer("calls", np.array(0))

    def forward(self, x):
        self.calls += 1
        return self.out(gt.nn.functional.dropout(gt.tanh(self.hidden(x)), 0.2))


class Noisy(gt.data.Dataset):
    """Points with noise that is drawn when they are loaded."""

    def __len__(self):
        return 40

    def __getitem__(self, i):
        x = np.sin(np.arange(4.0) * i).astype(np.float32)
        return x + np.float32(0.01 * gt.data.item_rng().normal()), x[:1]


def loss(net, batch):
    """The mean squared error."""
    return gt.mean((net(batch[0]) - batch[1]) ** 2)


def train(folder, way, callbacks=(), epochs=EPOCHS):
    """Train, with a checkpoint after each batch."""
    gt.manual_seed(1)
    workers = {"num_workers": 2} if way == "threads" else {}
    loader = gt.data.DataLoader(Noisy(), 4, shuffle=True, seed=3, **workers)
    return gt.fit(
        Net(),
        loss,
        gt.optim.Adam(lr=0.01),
        loader,
        epochs=epochs,
        folder=folder,
        callbacks=[*callbacks, gt.training.EarlyStopping(patience=100)],
        accumulate=2,
        clip=1.0,
        compile=way == "compiled",
        save=gt.training.SaveEvery(batches=2),
        progress=False,
    )


def digest(run):
    """A hash of all that has to be the same."""
    found = hashlib.sha256()
    for _, array in sorted(run.model.state_dict().items()):
        found.update(np.ascontiguousarray(array.numpy()).tobytes())
    for leaf in containers.flatten(run.state)[0]:
        found.update(np.asarray(leaf).tobytes())
    found.update(repr(run.losses).encode())
    return found.hexdigest()


if __name__ == "__main__":
    print("ready", flush=True)
    print(digest(train(sys.argv[1], sys.argv[2], epochs=int(sys.argv[3]))), flush=True)
