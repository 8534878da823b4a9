"""A character-level language model: an LSTM that learns a poem.

The model reads a text letter by letter and predicts the next one. The whole training step, with
the loop over the letters in it, is one compiled function. Then it writes: each letter is drawn
from the probabilities it gives, and fed back.

    python examples/character_lstm.py
"""

from typing import NamedTuple

import numpy as np

import gradtape as gt

# Lewis Carroll, 1871.
TEXT = """
Twas brillig, and the slithy toves
Did gyre and gimble in the wabe:
All mimsy were the borogoves,
And the mome raths outgrabe.

Beware the Jabberwock, my son!
The jaws that bite, the claws that catch!
Beware the Jubjub bird, and shun
The frumious Bandersnatch!

He took his vorpal sword in hand;
Long time the manxome foe he sought,
So rested he by the Tumtum tree
And stood awhile in thought.

And, as in uffish thought he stood,
The Jabberwock, with eyes of flame,
Came whiffling through the tulgey wood,
And burbled as it came!
"""
LETTERS = sorted(set(TEXT))
CODES = np.array([LETTERS.index(letter) for letter in TEXT])
LENGTH, BATCH = 32, 16


class Result(NamedTuple):
    """What the example found."""

    losses: list[float]  # per letter
    uniform: float  # the loss of somebody who knows nothing
    text: str  # what the model wrote


class Model(gt.nn.Module):
    """Letters to vectors, vectors through an LSTM, and a score for each letter that may follow."""

    def __init__(self, hidden: int):
        self.embedding = gt.nn.Embedding(len(LETTERS), 16)
        self.lstm = gt.nn.LSTM(16, hidden, batch_first=True)
        self.out = gt.nn.Linear(hidden, len(LETTERS))

    def forward(self, codes, state=None):
        """Scores after each letter, and the state after the last."""
        hidden, state = self.lstm(self.embedding(codes), state)
        return self.out(hidden), state


class Windows(gt.data.Dataset):
    """Every stretch of the text, and the same one letter later."""

    def __len__(self):
        return len(CODES) - LENGTH

    def __getitem__(self, start):
        return CODES[start : start + LENGTH], CODES[start + 1 : start + LENGTH + 1]


def loss(model, codes, following):
    """Mean of -log p of the letter that follows."""
    scores, _ = model(codes)
    return gt.nn.cross_entropy(scores.reshape(-1, len(LETTERS)), following.reshape(-1))


def train(model, steps: int):
    """A compiled step on batches of windows, with clipped gradients."""
    loader = gt.data.DataLoader(Windows(), BATCH, shuffle=True, drop_last=True)
    rule = gt.optim.Adam(lr=0.01)

    @gt.jit
    def step(model, state, codes, following):
        value, grads = gt.value_and_grad(loss)(model, codes, following)
        grads = gt.gradients.clip_by_global_norm(grads, 1.0)
        model, state = rule.apply(model, grads, state)
        return value, model, state

    state, losses = rule.init(model), []
    with gt.no_grad():
        while len(losses) < steps:
            for codes, following in loader:
                value, model, state = step(model, state, codes, following)
                losses.append(float(value))
                if len(losses) % 50 == 0:
                    print(f"step {len(losses):4d}   loss {losses[-1]:.3f}")
                if len(losses) == steps:
                    break
    return model, losses


def write(model, beginning: str, count: int, temperature: float = 0.5) -> str:
    """Let the model continue a text; each new letter is one step from the last state."""
    rng = np.random.default_rng(0)
    text, state, new = beginning, None, beginning
    step = gt.jit(lambda model, codes, state: model(codes, state))
    with gt.no_grad():
        for _ in range(count):
            codes = np.array([[LETTERS.index(letter) for letter in new]])
            scores, state = step(model, codes, state)
            chances = gt.softmax(scores[0, -1] / temperature).numpy().astype(np.float64)
            new = LETTERS[rng.choice(len(LETTERS), p=chances / chances.sum())]
            text += new
    return text


def main(quick: bool = False) -> Result:
    """Train and write; `quick` is a smaller model for a few steps."""
    gt.manual_seed(0)
    model, losses = train(Model(32 if quick else 96), 60 if quick else 600)
    uniform = float(np.log(len(LETTERS)))
    print(f"loss {losses[-1]:.3f} per letter, {uniform:.3f} for guessing\n")
    text = write(model, "\nAnd", 20 if quick else 300)
    print(text)
    return Result(losses, uniform, text)


if __name__ == "__main__":
    main()
