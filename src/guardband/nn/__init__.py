"""The network's end and its loss: ``OrderedTriple``, ``TripleHead``, ``IntervalLoss``, and ``FullyConnected``.

``QuantileHead`` and ``QuantileLoss`` are for many quantiles from one network.
``AbsoluteLoss``, ``GaussianLoss`` and ``PearceLoss`` are those of the methods that the paper compares with.
"""

from guardband.nn.absolute import AbsoluteLoss as AbsoluteLoss
from guardband.nn.fully_connected import FullyConnected as FullyConnected
from guardband.nn.gaussian import GaussianLoss as GaussianLoss
from guardband.nn.loss import IntervalLoss as IntervalLoss
from guardband.nn.ordering import OrderedTriple as OrderedTriple
from guardband.nn.ordering import TripleHead as TripleHead
from guardband.nn.pearce import PearceLoss as PearceLoss
from guardband.nn.quantiles import QuantileHead as QuantileHead
from guardband.nn.quantiles import QuantileLoss as QuantileLoss
