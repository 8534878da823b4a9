"""A program whose results are to be the same in every process: prints a digest of each.

Called with the number of threads for kernels, and a dtype to do a little in that alone; the
environment has the number of threads of BLAS.
"""

import hashlib
import itertools
import json
import sys

import numpy as np

import gradtape as gt


def digest(value):
    parts = [
        np.ascontiguousarray(leaf.detach().numpy() if isinstance(leaf, gt.Tensor) else leaf)
        for leaf in gt.tree.flatten(value)[0]
    ]
    found = hashlib.sha256()
    for part in parts:
        found.update(str((part.shape, part.dtype)).encode() + part.tobytes())
    return found.hexdigest()[:12]


def model(dtype, width):
    sizes = (40, width, width, 5)
    return {
        f"layer{n}": (gt.randn((b, a), dtype=dtype) / np.sqrt(a).astype(dtype), gt.zeros(b, dtype))
        for n, (a, b) in enumerate(itertools.pairwise(sizes))
    }


def loss(params, x, y):
    for weight, bias in params.values():
        x = gt.nn.dropout(gt.tanh(gt.nn.linear(x, weight, bias)), 0.1)
    return gt.mean((x - y) ** 2)


def trained(dtype, step, samples=700, width=300):
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(samples, n)).astype(dtype) for n in (40, 5))
    rule, params = gt.optim.Adam(lr=0.01), model(dtype, width)
    state = rule.init(params)
    for _ in range(3):
        value, grads = step(params, x, y)
        params, state = rule.apply(params, grads, state)
    return value, params


def images():
    rng = np.random.default_rng(1)
    x, kernel = rng.normal(size=(8, 3, 33, 33)), rng.normal(size=(16, 3, 3, 3))
    table, index = rng.normal(size=(50, 64)), rng.integers(0, 50, 3000)

    def of(x, kernel, table):
        y = gt.nn.batch_norm(gt.nn.conv2d(x, kernel), training=True)
        rows = gt.nn.embedding(index, table)
        return gt.sum(gt.nn.max_pool2d(y, 2) ** 2) + gt.sum(gt.softmax(rows @ rows.T, -1)[:, ::7])

    return gt.grad(of, (0, 1, 2))(x, kernel, table)


def network(amp):
    gt.manual_seed(0)
    body = gt.nn.Sequential(
        gt.nn.Conv2d(3, 16, 3), gt.nn.BatchNorm2d(16), gt.nn.ReLU(), gt.nn.MaxPool2d(2),
        gt.nn.Flatten(), gt.nn.Dropout(0.2), gt.nn.Linear(16 * 15 * 15, 64), gt.nn.Tanh(),
    )  # fmt: skip
    memory, head = gt.nn.LSTM(64, 48, batch_first=True), gt.nn.Linear(48, 5)
    parameters = [*body.parameters(), *memory.parameters(), *head.parameters()]
    optimizer, losses = gt.optim.AdamW(parameters, lr=0.01), []
    images, labels = gt.randn((24, 3, 32, 32), dtype=gt.float32), gt.randint(0, 5, 12)
    for _ in range(3):
        optimizer.zero_grad()
        with gt.autocast(enabled=amp):
            states = body(images).reshape((12, 2, 64))
            value = gt.nn.cross_entropy(head(memory(states)[0][:, -1]), labels)
        value.backward()
        optimizer.step()
        losses.append(value.detach())
    return losses, [p.detach() for p in parameters]


def algebra(dtype, n):
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=(n, n)).astype(dtype) for _ in range(2))

    def of(a, b):
        s = a @ a.T / n + 2 * np.eye(n, dtype=a.dtype)
        parts = [
            gt.linalg.solve(s, b), gt.linalg.inv(s), gt.linalg.cholesky(s), gt.linalg.qr(a)[0],
            gt.linalg.eigvalsh(s), gt.linalg.svd(a)[1], gt.linalg.slogdet(s)[1],
            gt.linalg.expm(a / n), gt.einsum("ij,kj->ik", a, b), gt.tensordot(a, b),
            gt.linalg.norm(a), gt.linalg.pinv(a), gt.linalg.lstsq(s, b)[0],
            gt.vdot(gt.ravel(a), gt.ravel(b)), a @ b[0], b[0] @ a,
        ]  # fmt: skip
        return sum(gt.sum(part * part) for part in parts)

    return of(a, b), gt.grad(of, (0, 1))(a, b), gt.jit(gt.grad(of, (0, 1)))(a, b)


def tape(dtype, n=230):
    made = gt.GradientTape(
        deterministic=gt.DeterministicConfig(global_seed=3),
        checkpoint=gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Full),
        persistent=True,
    )
    a = made.watch(np.random.default_rng(3).normal(size=(n, n)).astype(dtype))
    y = gt.sum(gt.linalg.solve(a, gt.nn.dropout(a @ a)))
    if n < 200:  # little: compiling takes long
        return y, made.gradient(y, a)
    z = gt.jit(lambda a: gt.sum(gt.linalg.inv(gt.nn.dropout(a))))(a)
    return y, z, made.gradient(y, a), made.gradient(z, a)


def little(dtype):
    with gt.deterministic(global_seed=7):
        return {
            "trained": trained(dtype, gt.value_and_grad(loss), samples=64, width=120),
            "tape": tape(dtype, n=120),
        }


def everything():
    found = {}
    for dtype in (np.float32, np.float64):
        name = np.dtype(dtype).name
        found[f"tape, {name}"] = tape(dtype)
        with gt.deterministic(global_seed=7):
            slope = gt.value_and_grad(loss)
            found[f"eager, {name}"] = trained(dtype, slope)
            found[f"compiled, {name}"] = trained(dtype, gt.jit(slope))
            for n in (60, 230):
                found[f"algebra of {n}, {name}"] = algebra(dtype, n)
    with gt.deterministic():
        found["images"] = images()
        for amp in (False, True):
            found[f"network, {amp}"] = network(amp)
    return found


def main(threads, dtype=None):
    gt.set_num_threads(int(threads))
    found = everything() if dtype is None else little(np.dtype(dtype))
    print(json.dumps({name: digest(value) for name, value in found.items()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
