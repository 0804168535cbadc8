"""The network's end and its loss: ``OrderedTriple``, ``TripleHead``, ``IntervalLoss``, and ``FullyConnected``."""

from guardband.nn.fully_connected import FullyConnected as FullyConnected
from guardband.nn.loss import IntervalLoss as IntervalLoss
from guardband.nn.ordering import OrderedTriple as OrderedTriple
from guardband.nn.ordering import TripleHead as TripleHead
