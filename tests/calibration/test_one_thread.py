"""Linear algebra on one thread, for as long as somebody asks for it."""

from threadpoolctl import threadpool_info

from guardband.calibration import one_thread as module
from guardband.calibration.one_thread import one_thread


def threads():
    module._libraries()  # which loads those that are looked at
    return [own["num_threads"] for own in threadpool_info() if own["user_api"] == "blas"]


def test_threads_come_back_when_the_last_has_left():
    before = threads()
    with one_thread():
        with one_thread():
            pass
        assert set(threads()) <= {1}
    assert threads() == before
