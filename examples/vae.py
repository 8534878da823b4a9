"""A variational autoencoder of handwritten digits.

The encoder turns an image into the mean and deviation of a few numbers, the decoder turns such
numbers back into an image. Drawing between them stays differentiable as noise is drawn first, then
scaled and shifted; in the compiled step it is drawn anew at each call. Afterwards the decoder makes
digits that nobody has written.

    python examples/vae.py
"""

from typing import NamedTuple

import numpy as np

import gradtape as gt

SHADES = " .:-=+*#%@"


class Result(NamedTuple):
    """What the example found."""

    losses: list[float]  # of each epoch
    test_loss: float
    error: float  # mean square of what is lost when test images are encoded and decoded
    spread: float  # the same for the mean image, which knows nothing of the one at hand
    drawn: np.ndarray  # new images


class VAE(gt.nn.Module):
    """Encoder and decoder with one hidden layer each."""

    def __init__(self, hidden: int, latent: int):
        self.encoder = gt.nn.Sequential(
            gt.nn.Linear(64, hidden), gt.nn.ReLU(), gt.nn.Linear(hidden, 2 * latent)
        )
        self.decoder = gt.nn.Sequential(
            gt.nn.Linear(latent, hidden), gt.nn.ReLU(), gt.nn.Linear(hidden, 64)
        )
        self.latent = latent

    def encode(self, images):
        """Mean and logarithm of the variance of the latent numbers."""
        return gt.split(self.encoder(images), 2, axis=-1)

    def forward(self, images):
        """Logits of the pixels, and the distribution they were drawn from."""
        mean, log_var = self.encode(images)
        noise = gt.randn(mean.shape, dtype=mean.dtype)
        return self.decoder(mean + gt.exp(0.5 * log_var) * noise), mean, log_var


def loss(model, images):
    """The negative evidence lower bound: −E log p(x|z) + KL(q(z|x) ‖ N(0, 1)), per image."""
    logits, mean, log_var = model(images)
    misfit = gt.nn.binary_cross_entropy_with_logits(logits, images, reduction="sum")
    divergence = 0.5 * gt.sum(mean**2 + gt.exp(log_var) - 1.0 - log_var)
    return (misfit + divergence) / len(images)


def train(model, images, epochs: int):
    """One compiled step for all batches; the mean loss of each epoch."""
    loader = gt.data.DataLoader(
        gt.data.TensorDataset(images), batch_size=64, shuffle=True, drop_last=True
    )
    rule = gt.optim.Adam(lr=2e-3)

    @gt.jit
    def step(model, state, images):
        value, grads = gt.value_and_grad(loss)(model, images)
        model, state = rule.apply(model, grads, state)
        return value, model, state

    state, losses = rule.init(model), []
    with gt.no_grad():
        for epoch in range(epochs):
            values = []
            for (batch,) in loader:
                value, model, state = step(model, state, batch)
                values.append(float(value))
            losses.append(float(np.mean(values)))
            if epoch % max(1, epochs // 10) == 0:
                print(f"epoch {epoch:3d}   loss {losses[-1]:.3f}")
    return model, losses


def picture(images) -> str:
    """Images side by side, in letters."""
    shades = (np.clip(images, 0, 0.999) * len(SHADES)).astype(int).reshape(-1, 8, 8)
    return "\n".join(
        "   ".join("".join(2 * SHADES[shade] for shade in image[row]) for image in shades)
        for row in range(8)
    )


def main(quick: bool = False) -> Result:
    """Train, rebuild test images and draw new ones; `quick` is a smaller model."""
    gt.manual_seed(0)
    digits = gt.data.load_digits()
    hidden, latent, epochs = (64, 8, 10) if quick else (256, 12, 100)
    model, losses = train(VAE(hidden, latent), digits.train_images, epochs)
    with gt.no_grad():
        test_loss = loss(model, digits.test_images).item()
        mean, _ = model.encode(digits.test_images)
        rebuilt = gt.sigmoid(model.decoder(mean)).numpy()
        drawn = gt.sigmoid(model.decoder(gt.randn((5, latent), dtype=gt.float32))).numpy()
    error = float(np.mean((rebuilt - digits.test_images) ** 2))
    spread = float(np.mean((digits.test_images - digits.train_images.mean(axis=0)) ** 2))
    print(f"test loss {test_loss:.3f}; error {error:.4f} of pixels, {spread:.4f} by their mean")
    print("\ntest images\n" + picture(digits.test_images[:5]))
    print("\nencoded and decoded\n" + picture(rebuilt[:5]))
    print("\nnew ones\n" + picture(drawn))
    return Result(losses, test_loss, error, spread, drawn)


if __name__ == "__main__":
    main()
