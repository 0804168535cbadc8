import pytest
import torch
from torch import nn

import guardband as gb


def backbone():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 1))


def test_the_last_linear_layer_becomes_a_triple_head():
    model = backbone()
    changed = gb.with_intervals(model)
    assert changed(torch.randn(5, 6)).shape == (5, 3)
    assert model(torch.randn(5, 6)).shape == (5, 1)  # the original is left alone
    assert isinstance(changed[4], gb.nn.TripleHead)
    torch.testing.assert_close(changed[0].weight, model[0].weight)


def test_another_layer_can_be_named_and_another_head_brought():
    model = nn.ModuleDict({"body": nn.Linear(6, 4), "last": nn.Linear(4, 1), "auxiliary": nn.Linear(4, 2)})
    assert isinstance(gb.with_intervals(model, layer="last")["last"], gb.nn.TripleHead)
    convolutional = nn.Sequential(nn.Conv2d(1, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    with pytest.raises(ValueError, match="no linear layer"):
        gb.with_intervals(convolutional)
    changed = gb.with_intervals(convolutional, layer="2", head=nn.Sequential(nn.Flatten(), gb.nn.TripleHead(4)))
    assert changed(torch.randn(2, 1, 8, 8)).shape == (2, 3)
    for layer in ("nothing", ""):
        with pytest.raises(ValueError, match="layer must be the name"):
            gb.with_intervals(model, layer=layer)
    with pytest.raises(ValueError, match="must name a linear layer unless head is given"):
        gb.with_intervals(convolutional, layer="0")


class Encoded(nn.Module):
    """Its head is registered first."""

    def __init__(self):
        super().__init__()
        self.head, self.body = nn.Linear(8, 1), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x):
        return self.head(self.body(x)[:, 0])


def encoder(layers=2):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


@pytest.mark.parametrize(
    ("model", "inside"),
    [
        (encoder(), "TransformerEncoder"),
        (nn.Sequential(nn.Linear(6, 8), encoder()), "TransformerEncoder"),
        (nn.TransformerEncoderLayer(8, 2, 16), "TransformerEncoderLayer"),
        (nn.TransformerDecoderLayer(8, 2, 16), "TransformerDecoderLayer"),
        (nn.Sequential(nn.MultiheadAttention(8, 2)), "MultiheadAttention"),
        (Encoded(), "TransformerEncoderLayer"),
    ],
)
def test_a_layer_that_torch_goes_on_after_is_refused(model, inside):
    with pytest.raises(ValueError, match=rf"is inside a {inside}, .*add a linear layer at the end.*layer=\.\.\."):
        gb.with_intervals(model)


def test_a_linear_layer_after_torchs_own_modules_is_replaced():
    named = gb.with_intervals(Encoded(), layer="head")
    assert named(torch.randn(2, 4, 8)).shape == (2, 3)
    ended = nn.Sequential(encoder(1), nn.Flatten(), nn.Linear(32, 1))
    assert gb.with_intervals(ended)(torch.randn(2, 4, 8)).shape == (2, 3)
    nested = nn.Sequential(nn.Flatten(), nn.Sequential(nn.Linear(32, 4), nn.Linear(4, 1)))
    assert gb.with_intervals(nested)(torch.randn(2, 4, 8)).shape == (2, 3)


def test_a_frozen_backbone_does_not_move():
    """Neither its parameters nor its batch statistics, and its dropout is off."""
    frozen = gb.with_intervals(backbone(), freeze=True)
    before = {name: t.clone() for name, t in frozen.state_dict().items()}
    x, y = torch.randn(300, 6), torch.randn(300)
    gb.train(frozen, [(x[i : i + 50], y[i : i + 50]) for i in range(0, 300, 50)], gb.nn.IntervalLoss(0.1), epochs=2)
    for name, t in frozen.state_dict().items():
        assert torch.equal(before[name], t) == (not name.startswith("network.4.")), name
    frozen.train()
    torch.testing.assert_close(frozen(x), frozen(x))


def test_the_precision_and_device_are_kept():
    assert gb.with_intervals(backbone().double())[4][0].weight.dtype == torch.float64


def test_it_calibrates():
    x, y = torch.randn(300, 6), torch.randn(300)
    assert gb.calibrate(gb.with_intervals(backbone(), freeze=True), (x, y))(x).shape == (300, 3)
