"""Where the files are that tests read."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "gradtape"
DOCS = ROOT / "docs"
