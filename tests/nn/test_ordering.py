import pytest
import torch

from guardband.nn import FullyConnected, OrderedTriple, TripleHead


def test_relu_ordering_is_the_papers_running_maximum():
    z = torch.randn(1000, 3)
    z1, z2, z3 = z.unbind(-1)
    expected = torch.stack([z1, torch.maximum(z1, z2), torch.maximum(torch.maximum(z1, z2), z3)], -1)
    torch.testing.assert_close(OrderedTriple("relu")(z), expected)


@pytest.mark.parametrize("ordering", ["softplus", "relu"])
def test_outputs_are_ordered_for_any_leading_shape(ordering):
    out = OrderedTriple(ordering)(100 * torch.randn(4, 7, 3))
    assert out.shape == (4, 7, 3)
    assert (out.diff(dim=-1) >= 0).all()


def test_softplus_gives_every_output_a_gradient_where_relu_is_dead():
    def gradient(ordering):
        z = torch.tensor([5.0, 0.0, -5.0], requires_grad=True)
        OrderedTriple(ordering)(z).square().sum().backward()
        return z.grad

    assert (gradient("softplus") != 0).all()
    assert gradient("relu")[1:].tolist() == [0, 0]


def test_softplus_is_the_default_and_widths_start_at_a_gaussian_interval():
    assert OrderedTriple().ordering == "softplus"
    out = TripleHead(4)(torch.zeros(1, 4))
    torch.testing.assert_close(out.diff(dim=-1), torch.full((1, 2), 1.6448536), atol=1e-5, rtol=0)


def test_other_orderings_are_refused():
    with pytest.raises(ValueError, match='"softplus" or "relu"'):
        OrderedTriple("sort")


def test_fully_connected_has_the_shape_asked_for():
    network = FullyConnected(5, hidden=(8, 4), activation="tanh", dropout=0.2)
    assert [type(layer).__name__ for layer in network] == [
        *("Linear", "Tanh", "Dropout", "Linear", "Tanh", "Dropout"),
        "TripleHead",
    ]
    assert network(torch.zeros(2, 5)).shape == (2, 3)


@pytest.mark.parametrize("wrong", [{"activation": "none"}, {"dropout": 1.0}, {"hidden": (0,)}])
def test_other_shapes_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        FullyConnected(5, **wrong)
