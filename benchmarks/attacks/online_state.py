"""Kills a process 200 times while it uses and saves an online rule; the state must end as if nothing had happened.

python benchmarks/attacks/online_state.py
"""

import os
import random
import signal
import tempfile
import time
from pathlib import Path

import numpy as np

import guardband as gb

ROWS, KILLS = 3000, 200
POINT, Y = np.random.default_rng(0).standard_normal((2, ROWS))


def go_on(path, rows):
    """Judge rows from wherever the state is, saving it before and after each."""
    online = gb.OnlineCalibrator.load(path)
    while online.stream.tally.judged < rows:
        at = online.stream.tally.judged
        if not online.waiting:
            online.transform(POINT[at : at + 1] - 1, POINT[at : at + 1], POINT[at : at + 1] + 1)
            online.save(path)
        online.update(Y[at : at + 1])
        online.save(path)


def killed(path, after):
    """Go on in a process of its own, and kill it after so many seconds; return whether it was still at work."""
    child = os.fork()
    if child == 0:
        go_on(path, ROWS)
        os._exit(0)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def main():
    """Kill, go on to the end, and compare with a run that nobody disturbed."""
    with tempfile.TemporaryDirectory() as folder:
        path, other = Path(folder) / "state", Path(folder) / "undisturbed"
        for place in (path, other):
            gb.OnlineCalibrator("tracking").save(place)
        go_on(path, 1)  # which loads all that a process needs, before any is made
        draw = random.Random(0)
        at_work = sum(killed(path, draw.uniform(0.001, 0.05)) for _ in range(KILLS))
        judged = gb.OnlineCalibrator.load(path).stream.tally.judged
        go_on(path, judged + 100)
        go_on(other, judged + 100)
        states = [gb.OnlineCalibrator.load(place) for place in (path, other)]
        same = states[0].certificate == states[1].certificate and states[0].stream.state == states[1].stream.state
        same &= np.array_equal(*(own.stream.past.in_time() for own in states))
        left = sorted(own.name for own in Path(folder).iterdir())
    print(f"{KILLS} kills, {at_work} of them at work, {judged} rows judged meanwhile")
    print(f"the same state as undisturbed: {same}; files: {left}")


if __name__ == "__main__":
    main()
