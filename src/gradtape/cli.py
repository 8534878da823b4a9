"""The `gradtape` command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import metadata

from gradtape.locks import load


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code.

    >>> main(["version"])
    gradtape ...
    0
    """
    parser = argparse.ArgumentParser(
        prog="gradtape", description="Automatic differentiation for people who write NumPy."
    )
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    commands.add_parser("version", help="print the version")
    training = commands.add_parser(
        "demo",
        help="train a convolution net on handwritten digits, and check what it did",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    training.add_argument("--epochs", type=_at_least(1), default=20, help="rounds of training")
    training.add_argument("--seed", type=_at_least(0), default=0, help="chooses the weights")
    training.add_argument(
        "--report", default="gradtape-demo.html", metavar="FILE", help="page of plots to write"
    )
    training.add_argument("--no-progress", action="store_true", help="show no progress bar")
    options = parser.parse_args(arguments)
    if options.command == "version":
        print(f"gradtape {version()}")
        return 0
    # It fails if a run is wrong, whatever time it took.
    demo = load("gradtape.demo")  # the version is told without loading all this
    result = demo.run(
        epochs=options.epochs,
        seed=options.seed,
        progress=not options.no_progress,
        report=options.report,
    )
    failures = result.failures
    if failures:
        print(f"FAILED: {'; '.join(failures)}")
    return 1 if failures else 0


def version() -> str:
    """The version of the installed package."""
    try:
        return metadata.version("gradtape")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is less than {least}")
        return value

    return number
