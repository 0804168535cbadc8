"""A fleet gives each member what it would get alone, however it is divided and whatever happens on the way."""

import os
import threading
import time
from dataclasses import replace

import pytest
import torch

from guardband.nn import FullyConnected, IntervalLoss
from guardband.training.batches import Draw, Rows
from guardband.training.division import divided
from guardband.training.fleet import Fleet
from guardband.training.job import Job
from guardband.training.recipe import Recipe
from guardband.training.squad import Squad
from guardband.training.threads import allowed_threads, one_thread_each

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def one_core(monkeypatch):
    """On a machine of one core no squad is divided to give others work."""
    monkeypatch.setattr("guardband.training.division.CORES", 1)


def job(groups=(4,), engine="dense", hidden=(200,), n=300, **settings):
    """Members in groups of the given sizes, each group with rows of its own."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 4, generator=generator)
    size = sum(groups)
    networks = []
    for i in range(size):
        torch.manual_seed(i)
        networks.append(FullyConnected(4, hidden))
    draws = []
    for group, members in enumerate(groups):
        draws += [Draw(torch.arange(group, n - 10 + group), group)] * members
    return Job(
        tuple(networks),
        IntervalLoss([0.05 + 0.9 * i / size for i in range(size)]),
        Recipe(epochs=5, learning_rate=0.01, batch_size=64),
        CPU,
        Rows(x, x.sum(-1)),
        tuple(draws),
        engine=engine,
        **settings,
    )


def trained(fleet, epochs=3):
    with fleet.at_work():
        for epoch in range(1, epochs + 1):
            fleet.epoch(epoch)
    return fleet.snapshot()


def assert_same(a, b, **tolerance):
    for name, value in a.items():
        torch.testing.assert_close(b[name], value, **tolerance)


def test_squads_are_parts_of_a_group_or_whole_groups():
    most = 2**20 // (4 * 200 * 64)
    assert most == 20
    assert divided(job((45,))) == [tuple(range(15)), tuple(range(15, 30)), tuple(range(30, 45))]
    assert divided(job((8, 8, 8))) == [tuple(range(16)), tuple(range(16, 24))]
    assert divided(job((8, 3))) == [tuple(range(8)), tuple(range(8, 11))]
    assert divided(job((8, 4))) == [tuple(range(8)), tuple(range(8, 12))]  # groups of one size only


def test_all_cores_have_work_if_there_are_members_enough(monkeypatch):
    def sizes(cores, groups, **settings):
        monkeypatch.setattr("guardband.training.division.CORES", cores)
        return [len(squad) for squad in divided(job(groups, **settings))]

    assert sizes(2, (1,)) == [1]
    assert sizes(2, (2,)) == [1, 1]
    assert sizes(2, (10,)) == [5, 5]
    assert sizes(4, (10,)) == [2, 3, 2, 3]
    assert sizes(64, (10,)) == [2] * 5
    assert sizes(4, (6, 6)) == [3, 3, 3, 3]
    assert sizes(2, (8, 8, 8)) == [16, 8]
    assert sizes(4, (10,), engine="stack") == [10]


def test_members_with_other_numbers_of_rows_train_apart():
    mixed = job((2, 2))
    draws = (*mixed.draws[:2], *[Draw(torch.arange(100), 0)] * 2)
    parts = divided(replace(mixed, draws=draws))
    assert parts == [(0, 1), (2, 3)]


@pytest.mark.parametrize("engine", ["dense", "stack", "row"])
def test_each_member_is_what_it_would_be_alone(engine, monkeypatch):
    monkeypatch.setattr("guardband.training.division.CACHE_BYTES", 4 * 200 * 64 * 3)
    whole = job((4, 4, 1), engine)
    together = trained(Fleet(whole))
    for i in range(whole.size):
        alone = trained(Fleet(whole.take([i])))
        assert_same(alone, {name: value[i : i + 1] for name, value in together.items()}, atol=1e-5, rtol=1e-5)


def test_the_number_of_threads_changes_nothing(monkeypatch):
    monkeypatch.setattr("guardband.training.division.CACHE_BYTES", 4 * 200 * 64)
    results, seen = [], []
    real = Squad.epoch

    def epoch(self, *given):
        seen.append(threading.current_thread().name)
        time.sleep(0.005)  # so that no thread does the work of all
        assert torch.get_num_threads() == 1
        real(self, *given)

    monkeypatch.setattr(Squad, "epoch", epoch)
    for threads in (1, 3):
        monkeypatch.setattr("guardband.training.fleet.allowed_threads", lambda threads=threads: threads)
        seen.clear()
        results.append(trained(Fleet(job((6,)))))
        assert len(set(seen)) == min(threads, 6) if threads == 1 else len(set(seen)) > 1
    assert all(value.equal(results[1][name]) for name, value in results[0].items())


def test_the_callers_threads_are_the_limit_and_come_back():
    before = torch.get_num_threads()
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        torch.set_num_threads(3)
        assert allowed_threads() == min(3, usable)
        with one_thread_each():
            assert torch.get_num_threads() == 1
            with one_thread_each():
                assert allowed_threads() == min(3, usable)
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3
        with pytest.raises(KeyError), one_thread_each():
            raise KeyError
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_threads_that_leave_in_another_order_get_their_numbers_back():
    before = torch.get_num_threads()
    first_in, second_in, first_out = threading.Event(), threading.Event(), threading.Event()
    seen = {}

    def first():
        with one_thread_each():
            first_in.set()
            second_in.wait()
        seen["first"] = torch.get_num_threads()
        first_out.set()

    def second():
        torch.get_num_threads()
        first_in.wait()
        with one_thread_each():
            second_in.set()
            first_out.wait()
            seen["inside"] = torch.get_num_threads()
        seen["second"] = torch.get_num_threads()

    try:
        torch.set_num_threads(2)
        workers = [threading.Thread(target=work) for work in (first, second)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert seen == {"first": 2, "inside": 1, "second": 2}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_fits_in_threads_of_the_callers_leave_its_number_alone():
    before, whole = torch.get_num_threads(), job((3,))
    results = {}

    def fit(i):
        time.sleep(0.01 * i)
        results[i] = trained(Fleet(whole))

    workers = [threading.Thread(target=fit, args=(i,)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert torch.get_num_threads() == before
    assert all(value.equal(results[2][name]) for name, value in results[0].items())


@pytest.mark.parametrize("engine", ["dense", "stack"])
@pytest.mark.parametrize("when", [1, 3])
def test_out_of_memory_halves_the_squad_and_ends_the_same(engine, when, monkeypatch):
    """Memory for three members at most, noticed in the first epoch or, when others take memory, later."""
    whole = job((8,), engine)
    expected = trained(Fleet(whole))
    real, sizes = Squad.epoch, []

    def epoch(self, number, *how):
        if number >= when and self._job.size > 3:
            sizes.append(self._job.size)
            if number > 1:
                real(self, number, *how)  # half-done work must not be kept
            raise torch.OutOfMemoryError("CUDA out of memory.")
        real(self, number, *how)

    monkeypatch.setattr(Squad, "epoch", epoch)
    fleet = Fleet(whole)
    assert_same(expected, trained(fleet), atol=1e-5, rtol=1e-5)
    assert sizes == [8, 4, 4]
    assert [len(part) for part in fleet._squad_ids] == [2, 2, 2, 2]


def test_one_member_that_does_not_fit_is_an_error(monkeypatch):
    def epoch(self, number, *how):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(Squad, "epoch", epoch)
    with pytest.raises(torch.OutOfMemoryError):
        trained(Fleet(job((2,))))


def test_other_errors_are_not_taken_for_memory(monkeypatch):
    def epoch(self, number, *how):
        raise RuntimeError("shapes do not fit")

    monkeypatch.setattr(Squad, "epoch", epoch)
    with pytest.raises(RuntimeError, match="shapes"):
        trained(Fleet(job((2,))))


def test_a_fleet_goes_on_from_its_state_even_divided(monkeypatch):
    whole = job((5,))
    expected = trained(Fleet(whole), epochs=4)
    fleet = Fleet(whole)
    trained(fleet, epochs=2)
    again = Fleet(whole, fleet.state(), 2)
    with again.at_work():
        again.epoch(3)
        again.epoch(4)
    assert all(value.equal(again.snapshot()[name]) for name, value in expected.items())
    halved = Fleet(whole, fleet.state(), 2)
    halved._squad_ids = [(0, 1), (2, 3, 4)]
    with halved.at_work():
        halved.epoch(3)
        halved.epoch(4)
    assert_same(expected, halved.snapshot(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("engine", ["dense", "stack", "row"])
def test_dismissed_members_stay_as_they_were_and_the_others_go_on(engine):
    whole = job((6,), engine)
    two, four = trained(Fleet(whole), epochs=2), trained(Fleet(whole), epochs=4)
    fleet = Fleet(whole)
    held_out = tuple(Draw(torch.arange(290, 300), 0) for _ in range(6))
    with fleet.at_work():
        fleet.epoch(1)
        fleet.dismiss(torch.tensor([True, False, False, False, False, True]))  # too few to be worth it
        fleet.epoch(2)
        fleet.dismiss(torch.tensor([True, True, False, True, False, True]))
        assert fleet._squad_ids == [(2, 4)]
        fleet = Fleet(whole, fleet.state(), 2)  # and so it is after a checkpoint
    with fleet.at_work():
        fleet.epoch(3)
        fleet.epoch(4)
        losses = fleet.losses(held_out)
    assert losses.isfinite().tolist() == [False, False, True, False, True, False]
    for name, value in fleet.snapshot().items():
        for i in range(6):
            expected = four if i in (2, 4) else two
            torch.testing.assert_close(value[i], expected[name][i], atol=1e-5, rtol=1e-5)
    fleet.dismiss(torch.ones(6, dtype=torch.bool))
    assert fleet._squad_ids == []
    assert fleet.snapshot()["0.weight"].shape[0] == 6


@pytest.mark.parametrize("engine", ["dense", "stack"])
def test_squads_that_do_not_fit_side_by_side_take_turns(engine, monkeypatch):
    """Memory for three members in all: whoever is not at work must wait elsewhere."""
    whole = job((4, 4), engine)
    expected = trained(Fleet(whole), epochs=4)
    real = Squad.epoch
    fleet = Fleet(whole)
    fleet._can_wait = True
    held_out = tuple(Draw(torch.arange(290, 300), 0) for _ in range(8))

    def epoch(self, number, *how):
        if number >= 2 and sum(map(len, fleet._squads)) > 3:
            real(self, number, *how)
            raise torch.OutOfMemoryError("CUDA out of memory.")
        real(self, number, *how)

    monkeypatch.setattr(Squad, "epoch", epoch)
    state = trained(fleet, epochs=4)
    assert_same(expected, state, atol=1e-5, rtol=1e-5)
    assert sorted(i for part in fleet._squad_ids for i in part) == list(range(8))
    assert max(map(len, fleet._squad_ids)) <= 3
    assert fleet.losses(held_out).isfinite().all()
    again = Fleet(whole, fleet.state(), 4)
    fleet.dismiss(torch.arange(8) < 7)
    assert_same(state, fleet.snapshot(), atol=0, rtol=0)
    assert_same(state, again.snapshot(), atol=0, rtol=0)
