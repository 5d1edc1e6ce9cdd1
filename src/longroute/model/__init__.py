"""A decoder-only language model over any encoding, its loss, and the text it goes on with."""

from longroute.model.decoder import Decoder as Decoder
from longroute.model.decoder import ModelSpec as ModelSpec
from longroute.model.decoding import Decoding as Decoding
from longroute.model.generate import GenerateSpec as GenerateSpec
from longroute.model.generate import generate as generate
from longroute.model.loss import token_losses as token_losses
