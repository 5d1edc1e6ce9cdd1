"""A decoder-only language model, pre-norm, that leaves position entirely to its encoding."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longroute.attention import Encoding, LayerCache, Pruning, Route, attend
from longroute.data.packing import Packing
from longroute.errors import InputError
from longroute.transport import LayerShape


@dataclass(frozen=True)
class ModelSpec:
    """The shape of a decoder. `kv_heads` below `heads` groups queries; the embedding is tied to the output."""

    layers: int = 4
    """Blocks."""
    width: int = 128
    """Hidden size."""
    heads: int = 4
    """Query heads."""
    kv_heads: int = 4
    """Key-value heads; divides heads."""
    head_dim: int = 32
    """Width of a head."""
    hidden: int = 344
    """Inner width of the gated feed-forward layer."""
    vocabulary: int = 2048
    """Token types."""
    initial: float = 0.02
    """Standard deviation of the weights at the start. Narrow models learn to recall sooner from a larger one."""

    def __post_init__(self):
        for name in ("layers", "width", "heads", "kv_heads", "head_dim", "hidden", "vocabulary"):
            if getattr(self, name) < 1:
                raise InputError(f"model: {name} must be at least 1, not {getattr(self, name)}")
        if self.heads % self.kv_heads:
            raise InputError(f"model: heads ({self.heads}) must be a multiple of kv_heads ({self.kv_heads})")
        if not self.initial > 0:
            raise InputError(f"model: initial must be positive, not {self.initial}")


class RouteAttention(nn.Module):
    """`attend` as a module without weights, so that a forward hook can look at a layer's attention, or replace it."""

    pruning: Pruning | None = None

    def forward(self, query: Tensor, key: Tensor, value: Tensor, route: Route) -> Tensor:
        return attend(query, key, value, route, pruning=self.pruning)


class Attention(nn.Module):
    """Self-attention of one layer under a position encoding."""

    def __init__(self, spec: ModelSpec, encoding: Encoding, layer: int, seed: int):
        super().__init__()
        self.head_counts = (spec.heads, spec.kv_heads, spec.kv_heads)
        self.head_dim = spec.head_dim
        self.project = nn.Linear(spec.width, sum(self.head_counts) * spec.head_dim, bias=False)
        self.output = nn.Linear(spec.heads * spec.head_dim, spec.width, bias=False)
        shape = LayerShape(spec.width, spec.heads, spec.kv_heads, spec.head_dim, spec.vocabulary, layer, seed)
        self.position = encoding.build(shape)
        self.attend = RouteAttention()

    def forward(self, x: Tensor, token_ids: Tensor, packing: Packing | None) -> Tensor:
        route = self.position(x, token_ids, packing)
        projected = self.project(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
        attended = self._attend(projected, lambda query, key, value: self.attend(query, key, value, route))
        return self.output(attended.transpose(1, 2).flatten(2))

    def extend(self, x: Tensor, token_ids: Tensor, cache: LayerCache, pads: Tensor | None) -> Tensor:
        """The same for tokens that follow those in `cache`."""
        route = cache.state.extend(x, token_ids, pads)
        projected = self.project(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
        attended = self._attend(projected, lambda query, key, value: cache.attend(query, key, value, route, pads))
        return self.output(attended.transpose(1, 2).flatten(2))

    def _attend(self, projected: Tensor, attend: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Tensor:
        if projected.device.type != "cpu":
            query, key, value = projected.split(self.head_counts, 1)
            return attend(query, key, value)
        half = projected.dtype in (torch.bfloat16, torch.float16)
        with torch.autocast("cpu", enabled=False):  # the CPU's fused kernel is slower in bfloat16: 9 × at 64 tokens
            query, key, value = (projected.float() if half else projected).split(self.head_counts, 1)
            return attend(query, key, value).to(projected.dtype)


class FeedForward(nn.Module):
    """SwiGLU: W₃ (silu(W₁ x) ⊙ W₂ x) (Shazeer 2020)."""

    def __init__(self, spec: ModelSpec):
        super().__init__()
        self.gate = nn.Linear(spec.width, spec.hidden, bias=False)
        self.value = nn.Linear(spec.width, spec.hidden, bias=False)
        self.output = nn.Linear(spec.hidden, spec.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(F.silu(self.gate(x)) * self.value(x))


class Block(nn.Module):
    """x + attention(norm x), then x + feed-forward(norm x)."""

    def __init__(self, spec: ModelSpec, encoding: Encoding, layer: int, seed: int):
        super().__init__()
        self.attention_norm = nn.RMSNorm(spec.width, eps=1e-6)
        self.attention = Attention(spec, encoding, layer, seed)
        self.feed_forward_norm = nn.RMSNorm(spec.width, eps=1e-6)
        self.feed_forward = FeedForward(spec)

    def forward(self, x: Tensor, token_ids: Tensor, packing: Packing | None) -> Tensor:
        x = x + self.attention(self.attention_norm(x), token_ids, packing)
        return x + self.feed_forward(self.feed_forward_norm(x))

    def extend(self, x: Tensor, token_ids: Tensor, cache: LayerCache, pads: Tensor | None) -> Tensor:
        """The same for tokens that follow those in `cache`."""
        x = x + self.attention.extend(self.attention_norm(x), token_ids, cache, pads)
        return x + self.feed_forward(self.feed_forward_norm(x))


class Decoder(nn.Module):
    """Token ids (batch time) to hidden states, and those to logits. No length is built in.

    Weights start normal with standard deviation σ = `initial`, outputs of residual branches at σ / √(2 · layers)
    (Radford et al. 2019: σ = 0.02); `seed` fixes them, and the frozen angles of random rotations.
    """

    def __init__(self, spec: ModelSpec, encoding: Encoding, *, seed: int = 0):
        super().__init__()
        self.spec, self.encoding = spec, encoding
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(spec.vocabulary, spec.width)
            self.blocks = nn.ModuleList(Block(spec, encoding, layer, seed) for layer in range(spec.layers))
            self.norm = nn.RMSNorm(spec.width, eps=1e-6)
            self._reset_parameters()

    @torch.no_grad()
    def _reset_parameters(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                module.weight.normal_(std=self.spec.initial)
        for block in self.blocks:
            assert isinstance(block, Block)  # ModuleList forgets its items' type
            block.attention.output.weight.mul_((2 * self.spec.layers) ** -0.5)
            block.feed_forward.output.weight.mul_((2 * self.spec.layers) ** -0.5)

    def prune(self, epsilon: float | None) -> Pruning | None:
        """From now on skip keys with less than `epsilon` of a row's attention; returns the count of what is skipped.

        Only certified ones, see `attention.pruning`. None: look at all again.
        """
        pruning = None if epsilon is None else Pruning(epsilon)
        for module in self.modules():
            if isinstance(module, RouteAttention):
                module.pruning = pruning
        return pruning

    def forward(self, token_ids: Tensor, packing: Packing | None = None) -> Tensor:
        """Logits (batch time vocabulary). For long inputs take `hidden_states` and `token_losses`: O(time) memory."""
        return F.linear(self.hidden_states(token_ids, packing), self.embedding.weight)

    def hidden_states(self, token_ids: Tensor, packing: Packing | None = None) -> Tensor:
        """The normalised hidden states that logits are read from, (batch time width)."""
        x = self.embedding(token_ids)
        for block in self.blocks:
            x = block(x, token_ids, packing)
        return self.norm(x)
