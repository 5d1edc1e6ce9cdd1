"""Generation: text that a model goes on with, token by token, out of `Decoding`."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from longroute.errors import InputError
from longroute.model.decoder import Decoder
from longroute.model.decoding import Decoding


@dataclass(frozen=True)
class GenerateSpec:
    """How many tokens follow a prompt, and how each is drawn: from softmax(logits / temperature), its tail cut off."""

    tokens: int = 200
    """Tokens after the prompt."""
    temperature: float = 0.8
    """Above 1 evens the probabilities out, below sharpens them; 0 takes the likeliest token (greedy)."""
    top_p: float = 0.95
    """Draw from the fewest likeliest tokens whose probabilities sum to at least this (Holtzman et al. 2020)."""
    seed: int = 0
    """Of the draws."""

    def __post_init__(self):
        if self.tokens < 1:
            raise InputError(f"generate: tokens must be at least 1, not {self.tokens}")
        if not 0 <= self.temperature < math.inf:
            raise InputError(f"generate: temperature must be at least 0 and finite, not {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise InputError(f"generate: top_p must be above 0 and at most 1, not {self.top_p}")
        if not 0 <= self.seed < 2**63:
            raise InputError(f"generate: seed must be in [0, 2^63), not {self.seed}")


def generate(
    model: Decoder, prompts: Sequence[Sequence[int]], spec: GenerateSpec, *, chunk: int = 1024
) -> Iterator[Tensor]:
    """The next token ids of all prompts, int64 (batch), `spec.tokens` times; every row goes on from its own prompt.

    Prompts may differ in length. They go through the model `chunk` tokens at a time: memory is O(time), and a token
    costs O(time) in attention (and for PaTH, in carrying its keys on), O(1) elsewhere. The same seed draws the same
    tokens on the same machine. Raises InputError, at once, for no prompt, an empty one, or an id beyond the vocabulary.
    """
    if chunk < 1:
        raise InputError(f"generate: chunk must be at least 1 token, not {chunk}")
    decoding = Decoding(model, lengths=[len(prompt) for prompt in prompts])
    return _tokens(decoding, _left_padded(model, prompts).split(chunk, 1), spec)


def _tokens(decoding: Decoding, chunks: Sequence[Tensor], spec: GenerateSpec) -> Iterator[Tensor]:
    generator = torch.Generator(chunks[0].device).manual_seed(spec.seed)
    *before, last = chunks
    for part in before:
        decoding.extend(part)
    for _ in range(spec.tokens):
        token = next_tokens(decoding.next_logits(last), spec, generator)
        last = token[:, None]
        yield token


@torch.no_grad()
def next_tokens(logits: Tensor, spec: GenerateSpec, generator: torch.Generator) -> Tensor:
    """A token id for each row of logits (batch vocabulary), int64 (batch); the generator moves unless greedy."""
    if spec.temperature == 0:
        return logits.argmax(-1)
    below = logits.double() - logits.amax(-1, keepdim=True)  # so that no temperature, however low, overflows
    ordered, ids = (below / spec.temperature).softmax(-1).sort(dim=-1, descending=True, stable=True)
    likelier = ordered.cumsum(-1) - ordered
    kept = ordered.masked_fill(likelier >= spec.top_p, 0)
    return ids.gather(-1, torch.multinomial(kept, 1, generator=generator))[:, 0]


def _left_padded(model: Decoder, prompts: Sequence[Sequence[int]]) -> Tensor:
    """The prompts (batch time), each at the end of its row."""
    for token in (token for prompt in prompts for token in prompt):
        if not 0 <= token < model.spec.vocabulary:
            raise InputError(f"generate: token {token} isn't in the model's vocabulary of {model.spec.vocabulary}")
    longest = max(map(len, prompts))
    rows = [[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts]
    return torch.tensor(rows, device=model.embedding.weight.device)
