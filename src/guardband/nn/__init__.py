"""The network's end and its loss: ``OrderedTriple``, ``TripleHead``, ``IntervalLoss``, and ``FullyConnected``.

``QuantileHead`` and ``QuantileLoss`` are for many quantiles from one network.
``GaussianHead`` and ``GaussianLoss`` are for a mean and a standard deviation. ``AbsoluteLoss`` and ``PearceLoss`` are
those of other methods that the paper compares with.
"""

from guardband.nn.absolute import AbsoluteLoss as AbsoluteLoss
from guardband.nn.fully_connected import FullyConnected as FullyConnected
from guardband.nn.gaussian import GaussianHead as GaussianHead
from guardband.nn.gaussian import GaussianLoss as GaussianLoss
from guardband.nn.loss import IntervalLoss as IntervalLoss
from guardband.nn.ordering import OrderedTriple as OrderedTriple
from guardband.nn.ordering import TripleHead as TripleHead
from guardband.nn.pearce import PearceLoss as PearceLoss
from guardband.nn.quantiles import QuantileHead as QuantileHead
from guardband.nn.quantiles import QuantileLoss as QuantileLoss
