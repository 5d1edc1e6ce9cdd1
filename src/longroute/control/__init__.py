"""Far-mass controls: what keeps the attention that distant tokens receive from growing with their number."""

from longroute.control.alibi import ALiBi as ALiBi
from longroute.control.charge import Charge as Charge
from longroute.control.forget import ForgetGate as ForgetGate
from longroute.control.none import NoControl as NoControl

Control = NoControl | ALiBi | ForgetGate
