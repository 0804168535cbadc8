"""A fully connected network that ends in an ordered triple."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import nn

from guardband.nn.ordering import Ordering, TripleHead

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "mish": nn.Mish,
    "elu": nn.ELU,
    "tanh": nn.Tanh,
}


class FullyConnected(nn.Sequential):
    """Hidden layers of the given widths, then ``TripleHead``: ``(..., d) -> (..., 3)``.

    Parameters
    ----------
    in_features : int
        The number of columns.
    hidden : sequence of int, default (200,)
        The widths of the hidden layers.
    activation : {"relu", "gelu", "silu", "mish", "elu", "tanh"}, default "relu"
        The activation after each hidden layer.
    dropout : float, default 0.0
        The share of hidden units that are dropped in training. Raise it if the network overfits.
    ordering : {"softplus", "relu"}, default "softplus"
        How the three outputs are kept in order. "softplus" always has a gradient; "relu" is the paper's, and
        one side can stop learning.
    last : function, default None
        Builds another last layer from the number of its inputs. None means ``TripleHead``.
    """

    def __init__(
        self,
        in_features: int,
        hidden: Sequence[int] = (200,),
        activation: str = "relu",
        dropout: float = 0.0,
        ordering: Ordering = "softplus",
        last: Callable[[int], nn.Module] | None = None,
    ) -> None:
        check_layers(hidden, activation, dropout)
        layers: list[nn.Module] = []
        for width in hidden:
            layers += [nn.Linear(in_features, width), ACTIVATIONS[activation]()]
            layers += [nn.Dropout(dropout)] if dropout else []
            in_features = width
        super().__init__(*layers, TripleHead(in_features, ordering) if last is None else last(in_features))


def check_layers(hidden: Sequence[int], activation: str, dropout: float) -> None:
    """Raise if layers cannot be so."""
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, found {activation!r}.")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be at least 0 and below 1, found {dropout}.")
    if any(width < 1 for width in hidden):
        raise ValueError(f"hidden must hold widths of at least 1, found {tuple(hidden)}.")
