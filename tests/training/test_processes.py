"""Squads that train in processes of their own are what they would be in one process, whatever happens to those."""

import dataclasses
import errno
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
import torch

from guardband.learning.architecture import Architecture
from guardband.nn.heads import Triple
from guardband.nn.loss import IntervalLoss
from guardband.nn.mixed import stack_losses
from guardband.training import division, processes
from guardband.training import job as jobs
from guardband.training.batches import Draw, Rows
from guardband.training.checkpoint import Checkpoint
from guardband.training.job import Job
from guardband.training.recipe import Recipe

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Processes are forked on Linux only.")


@pytest.fixture
def job(monkeypatch):
    """Four networks for tables that stop early, on what looks like four cores."""
    monkeypatch.setattr(division, "CORES", 4)
    monkeypatch.setattr(jobs, "SMALL_STEP", 0)
    monkeypatch.setattr(processes, "allowed_threads", lambda: 3)
    random = torch.Generator().manual_seed(0)
    x = torch.randn(200, 3, generator=random)
    rows = Rows(x, x.sum(1) + torch.randn(200, generator=random))
    shape, device = Architecture(hidden=(8,), tabular=True, numbers=3, dropout=0.1), torch.device("cpu")
    networks = tuple(shape.build(3, Triple(0.1), seed, device) for seed in range(4))
    return Job(
        networks,
        stack_losses([IntervalLoss(0.1) for _ in networks], device),
        Recipe(epochs="early", max_epochs=6, patience=2, batch_size=32, learning_rate=0.01),
        device,
        rows,
        tuple(Draw(torch.arange(200), seed) for seed in range(4)),
        seeds=tuple(range(4)),
        squads="processes",
    )


def same(one, other):
    assert one.epochs == other.epochs
    np.testing.assert_array_equal(one.losses, other.losses)
    assert one.state.keys() == other.state.keys()
    assert all(torch.equal(one.state[name], other.state[name]) for name in one.state)


def on_threads(job):
    return dataclasses.replace(job, squads="threads").train()


started = processes._started


def test_members_are_equal_to_the_bit_in_any_number_of_processes(job, monkeypatch):
    used = []
    monkeypatch.setattr(processes, "_started", lambda *given: used.append(given[2]) or started(*given))
    expected = on_threads(job)
    assert not used
    for n in (2, 3, 4):
        monkeypatch.setattr(processes, "allowed_threads", lambda n=n: n)
        same(job.train(), expected)
    assert used == [2, 3, 4]


def test_squads_of_a_process_that_died_are_trained_all_the_same(job, monkeypatch):
    work, expected = processes._work, on_threads(job)
    monkeypatch.setattr(processes, "_work", lambda *given: os.kill(os.getpid(), signal.SIGKILL))
    same(job.train(), expected)
    monkeypatch.setattr(processes, "_work", lambda *given: work(*given) if given[-1] else os._exit(1))
    same(job.train(), expected)


@pytest.fixture
def ended_if_it_hangs():
    """A guard: what waits for ever is ended, and counts as failed."""

    def give_up(*_):
        raise TimeoutError("The training waits for ever.")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def test_a_process_may_die_before_any_line_of_its_work(job, monkeypatch, ended_if_it_hangs):
    """Also while it takes a squad: whatever it holds then must not keep the others waiting."""
    work, expected = processes._work, on_threads(job)
    code, (heard, told) = work.__code__, os.pipe()

    def dies(number):
        lines = []

        def line(frame, event, _):
            if event == "line" and frame.f_lineno not in lines:
                lines.append(frame.f_lineno)
                if len(lines) == number:
                    os.write(told, b"x")
                    os.kill(os.getpid(), signal.SIGKILL)
            return line

        sys.settrace(lambda frame, *_: line if frame.f_code is code else None)

    def begin(number, *given):
        if given[-1] == 0:
            dies(number)
        work(*given)

    for number in range(1, 100):
        monkeypatch.setattr(processes, "_work", lambda *given, number=number: begin(number, *given))
        same(job.train(), expected)
        os.set_blocking(heard, False)
        try:
            os.read(heard, 1)
        except BlockingIOError:  # there are no more lines
            break
    os.close(heard)
    os.close(told)
    assert 10 < number < 100


def test_a_process_may_die_in_the_middle_of_a_message(job, monkeypatch, ended_if_it_hangs):
    work, expected = processes._work, on_threads(job)

    def begin(*given):
        if given[-1] == 0:
            os.write(given[-2][0][1].fileno(), struct.pack("!i", 1000) + b"the first of 1000 bytes")
            os.kill(os.getpid(), signal.SIGKILL)
        work(*given)

    monkeypatch.setattr(processes, "_work", begin)
    same(job.train(), expected)


def test_squads_are_trained_here_where_no_process_can_be_started(job, monkeypatch):
    def fork():
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    expected = on_threads(job)
    monkeypatch.setattr(os, "fork", fork)
    same(job.train(), expected)


def test_an_error_in_a_process_is_raised_here(job):
    def loss(outputs, y):
        raise ValueError("The loss is wrong.")

    with pytest.raises(ValueError, match=r"The loss is wrong\."):
        dataclasses.replace(job, loss=loss).train()
    assert not multiprocessing.active_children()


def test_an_error_that_cannot_be_sent_is_named():
    class Own(Exception):
        pass

    assert str(processes._told(Own("what was wrong"))) == "Own: what was wrong"


def test_nothing_is_left_behind_after_an_interruption(job):
    def progress(what, epoch, epochs):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dataclasses.replace(job, progress=progress).train()
    assert not multiprocessing.active_children()


def test_progress_is_that_of_the_slowest_squad(job):
    told = []
    longest = max(dataclasses.replace(job.take([i]), squads="one").train().epochs[0] for i in range(4))
    dataclasses.replace(job, progress=lambda *given: told.append(given)).train()
    assert {what for what, _, _ in told} == {"training"}
    assert {epochs for _, _, epochs in told} == {6}
    assert longest <= told[-1][1] <= 6


def test_one_process_trains_where_a_fork_would_not_do(job, tmp_path):
    job = dataclasses.replace(job, engine="tabular")
    assert processes.processes_for(job) == 3
    assert processes.processes_for(dataclasses.replace(job, squads="threads")) == 1
    assert processes.processes_for(dataclasses.replace(job, engine="row")) == 1
    assert processes.processes_for(dataclasses.replace(job, checkpoint=Checkpoint(tmp_path))) == 1
    assert processes.processes_for(dataclasses.replace(job, after_epoch=lambda *given: False)) == 1
    found = []
    thread = threading.Thread(target=lambda: found.append(processes.processes_for(job)))
    thread.start()
    thread.join()
    assert found == [1]


ENDLESS = """
    import signal
    import numpy as np
    import torch
    import guardband as gb
    from guardband.training import division, job

    torch.set_num_threads(2)
    division.CORES, job.SMALL_STEP = 2, 0
    from guardband.training import processes

    def alone(*given):  # an epoch without end, but for a guard
        print("at work", flush=True)
        signal.alarm(240)
        while True:
            sum(range(1000))

    processes._alone = alone
    x = np.random.default_rng(0).normal(size=(200, 3))
    gb.IntervalRegressor(epochs=5, preset="fast").fit(x, x.sum(1))
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="There is one core only.")
def test_processes_end_with_the_one_that_started_them(ended_if_it_hangs):
    run = subprocess.Popen([sys.executable, "-c", textwrap.dedent(ENDLESS)], stdout=subprocess.PIPE)
    assert [run.stdout.readline() for _ in range(2)] == [b"at work\n"] * 2
    run.kill()
    run.communicate()  # comes to an end only when no process holds the other end of its output any more
    assert run.returncode == -signal.SIGKILL
