"""Far-mass controls: what keeps the attention that distant tokens receive from growing with their number."""

from longroute.control.alibi import ALiBi as ALiBi
from longroute.control.charge import Charge as Charge
from longroute.control.forget import ForgetGate as ForgetGate
from longroute.control.log_count import LogCount as LogCount
from longroute.control.log_distance import LogDistance as LogDistance
from longroute.control.none import NoControl as NoControl
from longroute.control.pairwise import PairwiseBias as PairwiseBias
from longroute.control.penalty import Penalty as Penalty
from longroute.control.window import WindowWithSinks as WindowWithSinks

Control = NoControl | ALiBi | ForgetGate | LogDistance | LogCount | WindowWithSinks
