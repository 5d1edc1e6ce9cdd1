"""Training runs that can stop at any moment and go on bit for bit."""

from longroute.train.folder import RunFolder as RunFolder
from longroute.train.loop import NonFiniteError as NonFiniteError
from longroute.train.loop import train as train
from longroute.train.spec import RunSpec as RunSpec
from longroute.train.spec import TrainSpec as TrainSpec
