"""Transports: what one token's step is, and how steps become a frame. The union is the whole registry."""

from longroute.transport.block_rotation import BlockRotation as BlockRotation
from longroute.transport.frame import Frame as Frame
from longroute.transport.frame import IdentityFrame as IdentityFrame
from longroute.transport.frame import PairScores as PairScores
from longroute.transport.frame import RotationFrame as RotationFrame
from longroute.transport.householder import Householder as Householder
from longroute.transport.learned import LearnedRotation as LearnedRotation
from longroute.transport.none import NoTransport as NoTransport
from longroute.transport.path import PaTH as PaTH
from longroute.transport.random import RandomRotation as RandomRotation
from longroute.transport.random_block import RandomBlockRotation as RandomBlockRotation
from longroute.transport.random_householder import RandomHouseholder as RandomHouseholder
from longroute.transport.random_path import RandomPaTH as RandomPaTH
from longroute.transport.rope import RoPE as RoPE
from longroute.transport.step import LayerShape as LayerShape
from longroute.transport.step import StepInputs as StepInputs
from longroute.transport.step import Steps as Steps

Transport = (
    NoTransport
    | RoPE
    | RandomRotation
    | LearnedRotation
    | RandomHouseholder
    | Householder
    | RandomPaTH
    | PaTH
    | RandomBlockRotation
    | BlockRotation
)
