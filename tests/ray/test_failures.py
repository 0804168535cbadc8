"""What fails on Ray is said in one sentence that ends with what to do. Ray itself is stubbed, and does not run."""

import re
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from guardband.data.damage import UnreadableError
from guardband.exceptions import OverlapError
from guardband.experiments.reproduce import on_ray
from guardband.ray import copies
from guardband.ray.cluster import NO_MEMORY, RETRIES, Failed, Shared, all_in_order, fetched, in_order, task

ray = pytest.importorskip("ray", reason="needs the extra ray")
exceptions = pytest.importorskip("ray.exceptions")

NO_ROOM = OSError(28, "No space left on device", "/tmp/x")
LOST = exceptions.ObjectLostError("00ff", None, "")
KILLED = f"was killed {RETRIES + 1} times. Check the memory of the machines, and run again"
OF_RAY = [
    (exceptions.OutOfMemoryError("Task was killed due to the node running low on memory.\n\nMore."), NO_MEMORY),
    (exceptions.WorkerCrashedError(), KILLED),
    (exceptions.OutOfDiskError(""), "Free some space where Ray keeps its files, often /tmp/ray, and run again"),
    (exceptions.ObjectStoreFullError(""), "Free some space where Ray keeps its files"),
    (LOST, "Ray cannot go on: Failed to retrieve object 00ff"),
    (exceptions.NodeDiedError("The node died.\nMore."), "Ray cannot go on: The node died. Check the machines, and run"),
]


@pytest.fixture
def ray_get(monkeypatch):
    """Return a function that lets what Ray is asked for be this, or be raised."""

    def let(found):
        def get(reference):
            if isinstance(found, BaseException):
                raise found
            return found

        monkeypatch.setattr(ray, "get", get)

    return let


@pytest.mark.parametrize(("error", "words"), OF_RAY)
def test_errors_of_ray_are_one_sentence_wherever_they_are_raised(error, words, ray_get, monkeypatch):
    for raised in (error, exceptions.RayTaskError("f", "Traceback\n", exceptions.RayTaskError("g", "", error))):
        ray_get(raised)
        for call in (lambda: fetched("reference"), lambda: list(in_order([lambda: ["reference", 1]], 1))):
            with pytest.raises(ValueError, match=re.escape(words)) as found:
                call()
            assert type(found.value) is ValueError
            assert "\n" not in str(found.value)
    monkeypatch.setattr(ray, "put", lambda value: ray.get(None))
    with pytest.raises(ValueError, match=re.escape(words)):
        Shared(1)


@pytest.mark.parametrize("error", [OverlapError("Rows were copied."), UnreadableError("No table."), KeyError("x")])
def test_what_a_worker_raises_is_raised_as_it_is(error, ray_get):
    ray_get(exceptions.RayTaskError("f", "Traceback\n", error))
    with pytest.raises(type(error)) as found:
        fetched("reference")
    assert found.value is error


@pytest.mark.parametrize(
    ("error", "words", "kind"),
    [
        (NO_ROOM, "/tmp/x: No space left on device. Check the disks of the machines, and run", ValueError),
        (OSError(28, "No space left on device"), "A worker cannot go on: No space left on device. Check", ValueError),
        (OSError("out.csv cannot be written. Free some space."), "out.csv cannot be written. Free some", ValueError),
        (MemoryError("Unable to allocate 9 GiB"), NO_MEMORY, ValueError),
        (ValueError("Column 'a' is text."), "Column 'a' is text.", ValueError),
        (UnreadableError("1.csv cannot be read."), "1.csv cannot be read.", UnreadableError),
    ],
)
def test_what_fails_every_time_comes_back_in_place_of_the_first_result(error, words, kind, ray_get, monkeypatch):
    monkeypatch.setattr(ray, "remote", lambda **options: lambda function: function)

    def fails():
        raise error

    one, (first, *others) = task(fails)(), task(fails, returns=3)()
    assert others == [None, None]
    assert one == first == Failed(one.why, kind is UnreadableError)
    ray_get(one)
    assert next(in_order([lambda: "reference"], 1)) == one
    for call in (lambda: fetched("reference"), lambda: list(all_in_order([lambda: ["reference", 1]], 1))):
        with pytest.raises(kind) as found:
            call()
        assert type(found.value) is kind
        assert words in str(found.value)


def test_a_fault_of_our_own_is_not_taken_for_bad_input(monkeypatch):
    monkeypatch.setattr(ray, "remote", lambda **options: lambda function: function)
    with pytest.raises(KeyError):
        task(lambda: {}["x"])()


@pytest.fixture
def begun(monkeypatch):
    """Let tasks begin, and nothing come of them; returns those that are stopped."""
    stopped = []
    monkeypatch.setattr(ray, "cancel", lambda reference, force: stopped.append(reference))
    monkeypatch.setattr(ray, "remote", lambda **options: lambda f: SimpleNamespace(remote=lambda *given: "reference"))
    monkeypatch.setattr(ray, "wait", lambda waiting, num_returns: (waiting, []))
    monkeypatch.setattr(ray, "cluster_resources", dict)
    return stopped


@pytest.mark.parametrize(("error", "words"), OF_RAY[:2])
def test_cells_and_copies_whose_worker_is_killed_every_time_end_with_a_sentence(
    error, words, ray_get, begun, monkeypatch
):
    ray_get(error)
    monkeypatch.setattr(on_ray, "connected", nullcontext)
    with pytest.raises(ValueError, match=re.escape(words)):
        list(on_ray.on_ray(["cell"], 0, "cpu", None, "auto"))
    monkeypatch.setattr(copies, "_parts", lambda job, count: [[0], [1]])
    job = SimpleNamespace(
        device=SimpleNamespace(type="cpu"),
        rows=None,
        size=2,
        deadline=SimpleNamespace(is_set=False),
        take=lambda part: 1,
    )
    monkeypatch.setattr(copies, "replace", lambda own, **changes: own)
    with pytest.raises(ValueError, match=re.escape(words)):
        copies.Spread()(job)
    assert begun == ["reference"] * 2
