"""Layers of ours and PyTorch's of the same weights, and how they are compared."""

import numpy as np
import pytest

import gradtape as gt

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def pair(name, *args, ours=None, **kwargs):
    """A layer of ours and PyTorch's, of the same weights: those of PyTorch's, and back again."""
    own = getattr(gt.nn, name)(*args, **kwargs, **(ours or {}), dtype=np.float64)
    theirs = getattr(torch.nn, name)(*args, **kwargs, dtype=torch.float64)
    rng = np.random.default_rng(1)
    # Biases and norms start at 0 and 1, where a gradient that is wrong might not be seen.
    drawn = {
        key: torch.tensor(value.numpy() + 0.1 * rng.normal(size=value.shape))
        for key, value in theirs.state_dict().items()
    }
    theirs.load_state_dict(drawn)
    own.load_state_dict({key: value.numpy() for key, value in drawn.items()})
    back = {key: torch.tensor(value.detach().numpy()) for key, value in own.state_dict().items()}
    assert list(back) == list(theirs.state_dict())
    theirs.load_state_dict(back)
    return own, theirs


def leaves_of(results):
    if isinstance(results, tuple | list):
        return [leaf for each in results for leaf in leaves_of(each)]
    return [] if results is None else [results]


def compare(ours, theirs, run_ours, run_theirs, inputs, bound=1e-10):
    """Results, and gradients of a weighted sum of them by the parameters and inputs."""
    rng = np.random.default_rng(2)
    leaves = [gt.tensor(x, requires_grad=True) for x in inputs]
    theirs_leaves = [torch.tensor(x, requires_grad=True) for x in inputs]
    out, expected = leaves_of(run_ours(*leaves)), leaves_of(run_theirs(*theirs_leaves))
    assert len(out) == len(expected)
    weights = [rng.normal(size=y.shape) for y in out]
    for y, z in zip(out, expected, strict=True):
        np.testing.assert_allclose(y.detach(), z.detach(), rtol=bound, atol=bound)
    sum(gt.sum(y * w) for y, w in zip(out, weights, strict=True)).backward()
    sum((z * torch.tensor(w)).sum() for z, w in zip(expected, weights, strict=True)).backward()
    known = dict(theirs.named_parameters())
    pairs = [(name, p, known[name]) for name, p in ours.named_parameters()]
    pairs += [("input", *each) for each in zip(leaves, theirs_leaves, strict=True)]
    for name, p, q in pairs:
        np.testing.assert_allclose(p.grad, q.grad, rtol=bound, atol=bound, err_msg=name)
