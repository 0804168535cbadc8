import threading

import pytest
import torch

from guardband.training.batches import Draw, LoaderBatches, ResidentBatches, Rows, grouped, steps_of
from guardband.training.streaming import StreamedBatches

CPU = torch.device("cpu")


def rows(n=101, own=None):
    y = (
        torch.arange(float(n))
        if own is None
        else torch.arange(float(n)).expand(own, n) + 1000 * torch.arange(own)[:, None]
    )
    return Rows(torch.arange(float(n))[:, None].expand(n, 2) + torch.tensor([0.0, 0.5]), y, torch.rand(n))


def batches(source, epoch=1):
    return [source.batch(*pieces) for pieces in source.pieces(epoch)]


def test_every_row_is_seen_once_in_each_pass_in_batches_of_nearly_equal_size():
    draws = [Draw(torch.arange(50), 0), Draw(torch.arange(51, 101), 1)]
    made = batches(ResidentBatches(rows(), draws, 4, 16))
    assert [len(b.y[0]) for b in made] == [13, 13, 12, 12]
    for member, first in enumerate([0, 0, 51, 51]):
        seen = torch.cat([b.y[member] for b in made])
        assert sorted(seen.tolist()) == list(range(first, first + 50))
    for b in made:
        assert b.x.shape[0] == 2
        assert b.x[..., 0].repeat_interleave(2, 0).equal(b.y)


def test_the_order_depends_on_seed_and_epoch_alone():
    draw = Draw(torch.arange(50), 3)
    assert draw.order(2).equal(Draw(torch.arange(50), 3).order(2))
    assert not draw.order(2).equal(draw.order(3))
    assert not draw.order(2).equal(Draw(torch.arange(50), 4).order(2))


def test_targets_of_their_own():
    made = batches(ResidentBatches(rows(own=2), [Draw(torch.arange(101), 0)], 2, 20))
    for b in made:
        assert b.y[1].equal(b.y[0] + 1000)
        assert b.y[0].equal(b.x[0, :, 0])


def test_groups_are_runs_of_equal_length():
    a, b = Draw(torch.arange(3), 0), Draw(torch.arange(3), 1)
    assert grouped([a, a, b, b]) == [a, b]
    assert grouped([a, a, a]) == [a]
    assert grouped([a, a, b]) == [a, a, b]
    assert grouped([a, b, a, b]) == [a, b, a, b]


def test_streamed_batches_are_the_resident_ones():
    draws = [Draw(torch.arange(50), 0), Draw(torch.arange(51, 101), 1)]
    data = rows()
    resident = batches(ResidentBatches(data, draws, 2, 16))
    streamed = batches(StreamedBatches(data, draws, 2, 16, CPU))
    for a, b in zip(resident, streamed, strict=True):
        assert a.x.equal(b.x)
        assert a.y.equal(b.y)
        assert a.weight.equal(b.weight)


@pytest.mark.parametrize("form", [tuple, lambda both: dict(zip("ab", both, strict=True))])
def test_several_inputs_are_gathered_alike(form):
    whole, draws = rows(), [Draw(torch.arange(50), 0), Draw(torch.arange(51, 101), 1)]
    several = Rows(form([whole.x[:, :1], whole.x[:, 1]]), whole.y, whole.weight)
    one = batches(ResidentBatches(whole, draws, 2, 16))
    for source in (ResidentBatches(several, draws, 2, 16), StreamedBatches(several, draws, 2, 16, CPU)):
        for a, b in zip(one, batches(source), strict=True):
            first, second = b.x.values() if isinstance(b.x, dict) else b.x
            assert a.x.equal(torch.cat([first, second[..., None]], -1))
            assert a.y.equal(b.y)
            assert a.weight.equal(b.weight)


def test_a_stream_that_is_left_early_ends_its_thread():
    before = threading.active_count()
    pieces = StreamedBatches(rows(), [Draw(torch.arange(101), 0)], 1, 2, CPU).pieces(1)
    next(pieces)
    pieces.close()
    assert threading.active_count() == before


def test_an_error_in_the_stream_is_raised_where_the_batches_are_used():
    source = StreamedBatches(rows(), [Draw(torch.tensor([0, 1, 500]), 0)], 1, 2, CPU)
    with pytest.raises(IndexError):
        batches(source)


def test_a_loader_serves_all_members():
    (batch,) = batches(LoaderBatches([(torch.zeros(5, 3), torch.arange(5.0))], CPU, 4))
    assert batch.x.shape == (1, 5, 3)
    assert batch.y.shape == (4, 5)
    assert LoaderBatches(iter([]), CPU, 1).steps() == 0


def test_parts_of_a_pass_make_a_pass():
    whole, parted = Draw(torch.arange(100, 203), 3), Draw(torch.arange(100, 203), 3, parts=4)
    for turn in (1, 2):
        together = torch.cat([parted.order(epoch) for epoch in range(4 * turn - 3, 4 * turn + 1)])
        assert together.equal(whole.order(turn))
    assert parted.order(0).equal(whole.order(0))
    assert steps_of([parted], 10) == max(-(-len(parted.order(epoch)) // 10) for epoch in range(1, 5)) == 3
