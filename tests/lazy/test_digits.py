"""The guide's classifier on handwritten digits: in graph mode it learns as in eager mode."""

import numpy as np

import gradtape as gt
from gradtape.data import load_digits

BATCH, EPOCHS, RATE = 32, 12, 3e-3
NAMES = ("w1", "b1", "w2", "b2")


def first_parameters(seed):
    init = gt.nn.init.ArrayRng(seed=seed, dtype=gt.float32)
    return {
        "w1": init.glorot_uniform((64, 64)),
        "b1": np.zeros((1, 64), np.float32),
        "w2": init.glorot_uniform((64, 10)),
        "b2": np.zeros((1, 10), np.float32),
    }


def logits_of(x, w1, b1, w2, b2):
    return gt.nn.relu(x @ w1 + b1) @ w2 + b2


def loss_of(x, y, *parameters):
    return gt.mean(gt.nn.sparse_softmax_cross_entropy(logits_of(x, *parameters), y))


def batches(digits, seed):
    order = np.random.default_rng(seed).permutation(len(digits.train_labels))
    for start in range(0, len(order), BATCH):
        chosen = order[start : start + BATCH]  # the last one is smaller
        yield digits.train_images[chosen], digits.train_labels[chosen]


def in_graph_mode(digits, seed):
    env = gt.VariableEnvironment()
    for name, value in first_parameters(seed).items():
        env.name(name).set(value)
    ids = env.default_namespace().current_var_ids()
    adam = gt.optim.Adam.on_environment("adam", ids, env, lr=RATE)

    def step(ctx, images, labels):
        x = ctx.placeholder("x", (-1, 64), dtype=gt.float32)
        y = ctx.placeholder("y", (-1,), dtype=gt.int64)
        variables = [ctx.variable(name) for name in NAMES]
        loss = loss_of(x, y, *variables)
        grads = gt.graph.grad([loss], variables)
        feeder = gt.graph.Feeder().push(x, images).push(y, labels)
        value = float(ctx.evaluator().push(loss).set_feeder(feeder).run()[0])
        adam.update(variables, grads, ctx, feeder)
        return value

    losses = [
        [env.run(lambda ctx, b=batch: step(ctx, *b)) for batch in batches(digits, epoch)]
        for epoch in range(EPOCHS)
    ]

    def predicted(ctx):
        x = ctx.placeholder("x", (-1, 64), dtype=gt.float32)
        out = logits_of(x, *(ctx.variable(name) for name in NAMES))
        return np.argmax(out.eval(ctx, feed={x: digits.test_images}), axis=1)

    return losses, np.mean(env.run(predicted) == digits.test_labels)


def in_eager_mode(digits, seed):
    parameters = [gt.tensor(value, requires_grad=True) for value in first_parameters(seed).values()]
    adam = gt.optim.Adam(lr=RATE)
    losses = []
    for epoch in range(EPOCHS):
        losses.append([])
        for images, labels in batches(digits, epoch):
            adam.zero_grad(parameters)
            loss = loss_of(images, labels, *parameters)
            loss.backward()
            adam.step(parameters)
            losses[-1].append(loss.item())
    return losses


def test_the_classifier_learns_digits_with_the_losses_of_eager_mode():
    digits = load_digits()
    losses, accuracy = in_graph_mode(digits, seed=0)
    assert accuracy >= 0.95
    want = in_eager_mode(digits, seed=0)
    np.testing.assert_allclose(losses[0], want[0], rtol=1e-4)
    means, wanted = (np.mean(each[-1]) for each in (losses, want))
    np.testing.assert_allclose(means, wanted, rtol=2e-2)
