import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

import guardband as gb
from guardband.training.inputs import split_target


@pytest.mark.parametrize(
    ("shape", "mend"),
    [((4, 1), "y.squeeze"), ((4, 2), "one network for each column"), ((), "DataLoader")],
)
def test_a_y_of_another_shape_is_refused_with_what_mends_it(shape, mend):
    with pytest.raises(ValueError, match=mend):
        split_target((torch.zeros(4, 3), torch.zeros(shape)), "y")


def test_packed_sequences_are_refused_with_what_to_give_instead():
    packed = pack_padded_sequence(torch.zeros(3, 2, 1), torch.tensor([3, 2]), enforce_sorted=False)
    y = torch.zeros(2)
    for item in ((packed, y), ((packed, torch.zeros(2)), y), {"x": packed, "y": y}):
        with pytest.raises(TypeError, match="padded sequences and their lengths"):
            split_target(item, "y")
    with pytest.raises(TypeError, match="padded sequences"):
        gb.calibrate(torch.nn.Linear(1, 3), [(packed, y)])
