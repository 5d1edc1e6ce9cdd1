"""Transports: what one token's step is, and how steps become a frame. The union is the whole registry."""

from longroute.transport.frame import Frame as Frame
from longroute.transport.frame import IdentityFrame as IdentityFrame
from longroute.transport.frame import RotationFrame as RotationFrame
from longroute.transport.learned import LearnedRotation as LearnedRotation
from longroute.transport.none import NoTransport as NoTransport
from longroute.transport.random import RandomRotation as RandomRotation
from longroute.transport.rope import RoPE as RoPE
from longroute.transport.step import LayerShape as LayerShape
from longroute.transport.step import StepInputs as StepInputs

Transport = NoTransport | RoPE | RandomRotation | LearnedRotation
