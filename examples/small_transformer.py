"""A small transformer: a language model of words that learns a nursery rhyme.

Causal self-attention with rotary positions, trained on all places of a sequence at once. In this
rhyme the next word often depends on one that came long before, which attention can look up.

    python examples/small_transformer.py
"""

from typing import NamedTuple

import numpy as np

import gradtape as gt

PARTS = [
    "lay in the house that Jack built",
    "ate the malt that",
    "killed the rat that",
    "worried the cat that",
    "tossed the dog that",
    "milked the cow with the crumpled horn that",
    "kissed the maiden all forlorn that",
    "married the man all tattered and torn that",
    "woke the priest all shaven and shorn that",
    "kept the cock that crowed in the morn that",
]
SUBJECTS = ["malt", "rat", "cat", "dog", "cow", "maiden", "man", "priest", "cock", "farmer"]
VERSES = [
    f"this is the {subject} that " + " ".join(PARTS[number::-1]) + " ."
    for number, subject in enumerate(SUBJECTS)
]
WORDS = sorted({word for verse in VERSES for word in verse.split()})
PAD = -100  # what gt.nn.cross_entropy leaves out
LENGTH = max(len(verse.split()) for verse in VERSES) - 1


class Result(NamedTuple):
    """What the example found."""

    losses: list[float]  # per word
    uniform: float  # the loss of somebody who knows nothing
    verse: str  # what the model says of the dog
    expected: str


class Model(gt.nn.Module):
    """Words to vectors, layers of attention, and a score for each word that may follow."""

    def __init__(self, size: int, layers: int):
        heads = 4
        self.embedding = gt.nn.Embedding(len(WORDS), size)
        layer = gt.nn.TransformerEncoderLayer(
            size, heads, 2 * size, dropout=0.0, batch_first=True, norm_first=True,
            rotary=gt.nn.RotaryEmbedding(size // heads),
        )  # fmt: skip
        self.layers = gt.nn.TransformerEncoder(layer, layers, norm=gt.nn.LayerNorm(size))
        self.out = gt.nn.Linear(size, len(WORDS))

    def forward(self, codes):
        """Scores after each word; `is_causal` hides from each place what comes after it."""
        return self.out(self.layers(self.embedding(codes), is_causal=True))


def encoded(text: str) -> list[int]:
    """Words as numbers."""
    return [WORDS.index(word) for word in text.split()]


def make_data() -> tuple[np.ndarray, np.ndarray]:
    """Each verse up to its last word, and the same one word later, filled up to one length."""
    before = np.zeros((len(VERSES), LENGTH), int)
    after = np.full((len(VERSES), LENGTH), PAD)
    for row, verse in enumerate(VERSES):
        codes = encoded(verse)
        before[row, : len(codes) - 1], after[row, : len(codes) - 1] = codes[:-1], codes[1:]
    return before, after


def loss(model, before, after):
    """Mean of -log p of the word that follows."""
    scores = model(before)
    return gt.nn.cross_entropy(scores.reshape(-1, len(WORDS)), after.reshape(-1), ignore_index=PAD)


def train(model, steps: int):
    """Compiled steps on all verses, with a rate that rises and falls."""
    before, after = make_data()
    rule = gt.optim.AdamW(lr=gt.optim.one_cycle(0.01, steps), weight_decay=0.01)

    @gt.jit
    def step(model, state):
        value, grads = gt.value_and_grad(loss)(model, before, after)
        model, state = rule.apply(model, grads, state)
        return value, model, state

    state, losses = rule.init(model), []
    with gt.no_grad():
        for number in range(steps):
            value, model, state = step(model, state)
            losses.append(float(value))
            if number % 20 == 0:
                print(f"step {number:3d}   loss {losses[-1]:.4f}")
    return model, losses


def recite(model, beginning: str) -> str:
    """Add the most probable word until a full stop."""
    codes = encoded(beginning)
    predict = gt.jit(lambda model, codes: model(codes))
    with gt.no_grad():
        while WORDS[codes[-1]] != "." and len(codes) <= LENGTH:
            row = np.zeros((1, LENGTH), int)  # one length: compiled once
            row[0, : len(codes)] = codes
            codes.append(int(np.argmax(predict(model, row).numpy()[0, len(codes) - 1])))
    return " ".join(WORDS[code] for code in codes)


def main(quick: bool = False) -> Result:
    """Train and recite; `quick` is a smaller model."""
    gt.manual_seed(0)
    model, losses = train(Model(32, 1), 80) if quick else train(Model(64, 2), 200)
    uniform = float(np.log(len(WORDS)))
    print(f"loss {losses[-1]:.4f} per word, {uniform:.4f} for guessing")
    expected = VERSES[SUBJECTS.index("dog")]
    verse = recite(model, "this is the dog")
    print(verse)
    return Result(losses, uniform, verse, expected)


if __name__ == "__main__":
    main()
