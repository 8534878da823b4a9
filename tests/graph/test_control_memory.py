"""What compiled loops keep in memory: as much as their policy says, and nothing after the call."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/clear_refs").exists(), reason="reads what Linux says of memory"
    ),
]

COMMON = textwrap.dedent("""
    import json, signal, sys, threading
    from pathlib import Path
    import numpy as np
    import gradtape as gt

    def resident(field):
        for line in Path("/proc/self/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == field:
                return int(value.split()[0]) * 1024

    def loss(x, end, save):
        go_on = lambda s: s[1] < end
        step = lambda s: (s[0] + 1e-4 * np.sin(s[0]), s[1] + 1)
        return np.sum(gt.while_loop(go_on, step, (x, 0), save=save)[0])
""")


def measured(program: str, *arguments: str) -> dict[str, float]:
    """What a program prints, run by a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", COMMON + textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("save", "states"), [("all", 10_000), ("sqrt", 200), ("100", 200)])
def test_a_long_loop_keeps_what_its_policy_says(save: str, states: int) -> None:
    found = measured(
        """
        save = int(sys.argv[1]) if sys.argv[1].isdigit() else sys.argv[1]
        gradient = gt.jit(gt.grad(lambda x, end: loss(x, end, save)))
        x = np.linspace(0.0, 3.0, 1000)
        gradient(x, np.int64(2))
        Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten: proc(5)
        before = resident("VmRSS")
        got = gradient(x, np.int64(10_000))
        peak = resident("VmHWM") - before
        slope, at = np.ones_like(x), x
        for _ in range(10_000):
            slope, at = slope * (1.0 + 1e-4 * np.cos(at)), at + 1e-4 * np.sin(at)
        print(json.dumps({"peak": peak, "error": float(np.abs(got - slope).max())}))
        """,
        save,
    )
    assert found["error"] < 1e-9
    # Stacks that grow are copied once they are full, and the body has values of its own.
    assert found["peak"] < 3 * states * 8000 + 2**20
    if save == "all":
        assert found["peak"] > states * 8000  # or the figure means nothing


CALLS = {
    "results": "gradient(x, np.int64(50 + n % 500))",
    "registers": "small(0.5, np.int64(50 + n % 5000))",
    # The index is wrong after some steps, when the stack has grown.
    "errors": """
    try:
        checked(x, np.int64(700))
    except gt.errors.IndexingError:
        pass
    else:
        raise AssertionError("no error")
""",
}


@pytest.mark.parametrize("kind", CALLS)
def test_calls_leave_nothing_behind(kind: str) -> None:
    found = measured(
        """
        gradient = gt.jit(gt.grad(lambda x, end: loss(x, end, "all")))
        small = gt.jit(gt.grad(lambda x, end: loss(x, end, "all")))

        def table_loss(x, end):
            go_on = lambda s: s[1] < end
            step = lambda s: (s[0] + gt.take(x, s[1]) * np.sin(s[0]), s[1] + 1)
            return np.sum(gt.while_loop(go_on, step, (x, 0))[0])

        checked = gt.jit(gt.grad(table_loss))
        x = np.linspace(0.0, 1e-3, 600)

        def call(n):
            exec(code)

        code = sys.argv[1]
        for n in range(300):
            call(n)
        before = resident("VmRSS")
        for n in range(2000):
            call(n)
        print(json.dumps({"grown": resident("VmRSS") - before}))
        """,
        textwrap.dedent(CALLS[kind]),
    )
    # One call keeps up to 550 states of 4800 bytes: 2.6 MB. All of them would be gigabytes.
    assert found["grown"] < 4 * 2**20


def test_interrupted_calls_leave_nothing_behind() -> None:
    found = measured(
        """
        class Stop(Exception):
            pass

        def stop(*_):
            raise Stop

        signal.signal(signal.SIGALRM, stop)
        endless = gt.jit(gt.grad(lambda x: loss(x, np.int64(2**40), 100)))
        growing = gt.jit(gt.grad(lambda x: np.sum(
            gt.while_loop(lambda s: s[0] < 9.0, lambda s: np.sin(s), x))))
        x = np.linspace(0.1, 1.0, 600)

        def call(function):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            try:
                function(x)
            except Stop:
                return
            raise AssertionError("it has ended")

        for _ in range(3):
            call(growing), call(endless)
        before = resident("VmRSS")
        for _ in range(10):
            call(growing), call(endless)
        print(json.dumps({"grown": resident("VmRSS") - before}))
        """
    )
    # In a twentieth of a second each call keeps more than this.
    assert found["grown"] < 64 * 2**20
