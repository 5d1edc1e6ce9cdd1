"""A decoder-only language model over any encoding, and its loss."""

from longroute.model.decoder import Decoder as Decoder
from longroute.model.decoder import ModelSpec as ModelSpec
from longroute.model.decoding import Decoding as Decoding
from longroute.model.loss import token_losses as token_losses
