"""Run the tests of other packages on autograd and on gradtape, and write the table of the results.

    python tests/ecosystem/run.py --sources FOLDER [--only NAME] [--write docs/ecosystem.md]

It fails if a test that passes on autograd fails on gradtape, unless `known_failures.txt` says why.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import re
import resource
import subprocess
import sys
import tarfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from packages import HERE, PACKAGES, Package

KNOWN = HERE / "known_failures.txt"
LIMIT = 3600.0
# Numbers that both runs found are equal if they differ by less, relative to the largest of them:
# minimizers stop at slightly different points.
TOLERANCE = 1e-4
START, END = "<!-- made by make test-ecosystem -->", "<!-- end of what is made -->"


@dataclass(frozen=True)
class Run:
    """What one run of a package's tests gave."""

    outcomes: dict[str, str]
    found: dict[str, list[float]]
    seconds: float

    @property
    def passed(self) -> set[str]:
        """The ids of the tests that passed."""
        return {name for name, outcome in self.outcomes.items() if outcome == "passed"}

    @property
    def failed(self) -> set[str]:
        """The ids of the tests that failed."""
        return {name for name, outcome in self.outcomes.items() if outcome == "failed"}

    @property
    def refused(self) -> int:
        """How many functions gradtape refused, with an error that says so, as expected."""
        return sum(outcome == "refused" for outcome in self.outcomes.values())

    @property
    def summary(self) -> str:
        """The numbers, in words."""
        parts = [f"{len(self.passed)} pass"]
        parts += [f"{len(self.failed)} fail"] if self.failed else []
        parts += [f"{self.refused} refused"] if self.refused else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Result:
    """A package, run on autograd (unless it knows NumPy only) and on gradtape."""

    package: Package
    peer: Run | None
    ours: Run

    @property
    def lost(self) -> set[str]:
        """Tests that do not pass on gradtape: those that pass on autograd, or all."""
        return self.peer.passed - self.ours.passed if self.peer else self.ours.failed


def known_failures() -> dict[str, str]:
    """The reason for each id in the file, which is the comment above it."""
    found, reason, commented = {}, "", False
    for line in KNOWN.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if text.startswith("#"):
            reason = f"{reason} {text[1:].strip()}".strip() if commented else text[1:].strip()
        elif text:
            found[text] = reason
        commented = text.startswith("#")
    return found


def home_of(package: Package, sources: Path) -> Path:
    """The folder that the paths of a package's tests start from."""
    if package.home == "here":
        return HERE
    if package.home == "installed":
        spec = importlib.util.find_spec(package.module)
        if spec is None or spec.origin is None:
            raise SystemExit(f"{package.name}: its module {package.module} is not installed")
        return Path(spec.origin).parent
    stem = f"{package.name}-{importlib.metadata.version(package.name)}"
    if not (sources / stem).is_dir():
        with tarfile.open(sources / f"{stem}.tar.gz") as archive:
            archive.extractall(sources, filter="data")
    return sources / stem


def run(package: Package, on: str, sources: Path) -> Run:
    """Run the tests of a package in a process of their own."""
    home = home_of(package, sources)
    report, found = sources / f"{package.id}.{on}.xml", sources / f"{package.id}.{on}.json"
    for path in (report, found):
        path.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(home)]
    command += ["--confcutdir", str(home), "-q", "-p", "no:cacheprovider", "-p", "ecosystem_plugin"]
    command += ["--tb=short", f"--junit-xml={report}", *package.options, *package.tests]
    settings = {
        "ECOSYSTEM_ON": on,
        "ECOSYSTEM_FOUND": str(found),
        "PYTHONPATH": str(HERE),
        "OPENBLAS_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
        **package.environment,
    }
    log = sources / f"{package.id}.{on}.log"
    start = processor_seconds()
    with log.open("w", encoding="utf-8") as out:
        subprocess.run(
            command,
            cwd=home,
            env={**os.environ, **settings},
            stdout=out,
            stderr=subprocess.STDOUT,
            timeout=LIMIT,
            check=False,
        )
    seconds = processor_seconds() - start
    if not report.exists():
        raise SystemExit(f"{package.name}: no test was run on {on}; see {log}")
    numbers = json.loads(found.read_text(encoding="utf-8")) if found.exists() else {}
    return Run(outcomes(report), numbers, seconds)


def processor_seconds() -> float:
    """The processor time of all finished runs: others on the machine do not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def outcomes(report: Path) -> dict[str, str]:
    """What each test of a report came to: passed, failed, refused or skipped."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        children = {child.tag: child.get("message") or "" for child in case}
        outcome = "passed"
        if "failure" in children or "error" in children:
            outcome = "failed"
        elif "skipped" in children:
            outcome = "refused" if children["skipped"].startswith("refused:") else "skipped"
        found[f"{case.get('classname')}::{case.get('name')}"] = outcome
    return found


def differences(result: Result) -> list[str]:
    """The numbers that the two runs do not agree on."""
    if result.peer is None:
        return []
    lines = []
    for name, theirs in result.peer.found.items():
        ours = result.ours.found.get(name)
        if ours is None:
            continue  # its test failed, which is told in any case
        distance = max((abs(a - b) for a, b in zip(theirs, ours, strict=True)), default=0.0)
        scale = max(map(abs, theirs), default=0.0)
        if not distance <= TOLERANCE * max(scale, 1e-12):
            lines.append(f"{result.package.name}: {name}: {ours[:5]}, autograd found {theirs[:5]}")
    return lines


def reason_for(package: str, test: str, known: dict[str, str]) -> str | None:
    """Why a test fails, if that is known: its own line, or one for all tests of a package."""
    return known.get(f"{package}: {test}", known.get(f"{package}: *"))


def complaints(results: list[Result], known: dict[str, str]) -> list[str]:
    """What has to be mended, or argued."""
    lines = []
    for result in results:
        name = result.package.name
        argued = {test for test in result.lost if reason_for(name, test, known)}
        lines += [f"{name}: {test} fails" for test in sorted(result.lost - argued)]
        lines += differences(result)
        passed = {f"{name}: {test}" for test in result.ours.passed} & set(known)
        lines += [f"{test} passes, and is listed in {KNOWN.name}" for test in sorted(passed)]
    return lines


def table(results: list[Result], known: dict[str, str]) -> str:
    """The table of the results, and the reasons for what is lost."""
    rows = [
        "| package | what is run | on autograd | on gradtape | seconds |",
        "|---|---|---|---|---|",
    ]
    for result in results:
        package, peer, ours = result.package, result.peer, result.ours
        version = importlib.metadata.version(package.name)
        times = f"{peer.seconds:.0f} and {ours.seconds:.0f}" if peer else f"{ours.seconds:.0f}"
        theirs = peer.summary if peer else "–"
        rows.append(
            f"| {package.name} {version} | {package.what} | {theirs} | {ours.summary} | {times} |"
        )
    reasons = Counter(
        f"{result.package.name}: {reason_for(result.package.name, test, known) or 'not explained'}"
        for result in results
        for test in result.lost
    )
    text = "\n".join(rows)
    if reasons:
        lines = [f"- {why} ({counted(n, 'test')})" for why, n in sorted(reasons.items())]
        text += "\n\nTests that pass on autograd and not on gradtape:\n\n" + "\n".join(lines)
    return text


def counted(number: int, noun: str) -> str:
    """A number of things, in words: 1 test, 2 tests."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def write(path: Path, text: str) -> None:
    """Put the table between the two marks of a document."""
    old = path.read_text(encoding="utf-8")
    new = re.sub(f"{START}.*{END}", lambda _: f"{START}\n\n{text}\n\n{END}", old, flags=re.DOTALL)
    path.write_text(new, encoding="utf-8")


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path, required=True, help="a folder with the downloads")
    parser.add_argument("--only", action="append", help="the name of a package, or of its tests")
    parser.add_argument("--write", type=Path, help="the document that gets the table")
    options = parser.parse_args()
    known, results = known_failures(), []
    for package in PACKAGES:
        if options.only and not {package.name, package.id} & set(options.only):
            continue
        sources = options.sources.resolve()
        peer = run(package, "autograd", sources) if package.peer == "autograd" else None
        results.append(Result(package, peer, run(package, "gradtape", sources)))
        print(table(results[-1:], known).splitlines()[2], flush=True)
    if options.write:
        write(options.write, table(results, known))
    problems = complaints(results, known)
    print(*problems, sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
