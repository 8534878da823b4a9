"""Processes that measure one side of a comparison each, and how they are talked to.

Requests go as lines of JSON to the standard input of a process, each is answered by one on its
standard output; the process ends with its input. It keeps to as many cores as it has threads,
because that is what some libraries take their number of threads from. A process that waits for its
turn is stopped, since the threads of some libraries spin on for a while.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from benchmarks import THREADS
from benchmarks.compiled_program import UnavailableError

ROOT = Path(__file__).resolve().parent.parent
PR_SET_PDEATHSIG = 1  # from linux/prctl.h


def answer_of(module: str, *arguments: str) -> Any:
    """Return what a module prints last, read as JSON; it is run by a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, "BENCHMARK_THREADS": str(THREADS)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{module} {' '.join(arguments)}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


class Worker:
    """A process of one side, bound to a number of cores; stopped while it has no request."""

    def __init__(self, module: str, side: str, threads: int, env: Mapping[str, str]) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed on exit)
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, side],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=ROOT,
            env={**os.environ, **env, "BENCHMARK_THREADS": str(threads)},
        )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()  # it has nothing to finish, and some libraries take long to end
        self._process.communicate()
        self._log.close()

    def send(self, request: Mapping[str, Any]) -> None:
        """Send a request; a process that has ended is noticed by the answer."""
        self._process.send_signal(signal.SIGCONT)
        with suppress(BrokenPipeError):
            print(json.dumps(request), file=self._process.stdin, flush=True)

    def receive(self) -> dict[str, Any]:
        """Wait for the answer."""
        assert self._process.stdout is not None
        if line := self._process.stdout.readline():
            self._process.send_signal(signal.SIGSTOP)
            return dict(json.loads(line))
        code = self._process.wait()
        self._log.seek(0)
        return {"failed": f"the process ended with {code}: {self._log.read()[-2000:]}"}

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and wait for the answer."""
        self.send(request)
        return self.receive()


def answer_requests(make: Callable[[str], Any]) -> None:
    """Bind this process to its cores and answer requests until there are none.

    Args:
        make: Makes the side that was asked for; a request names one of its methods.
    """
    # Stopped between requests, it would outlive a parent that was killed.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[-THREADS:])
    # What libraries print must not get between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    side = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if side is None:
                side = make(sys.argv[1])
            answer = getattr(side, request.pop("do"))(**request)
        except UnavailableError as error:
            answer = {"unavailable": str(error)}
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}"}
        _send(answers, answer)


def _send(stream: TextIO, answer: dict[str, Any]) -> None:
    stream.write(json.dumps(answer) + "\n")
    stream.flush()
