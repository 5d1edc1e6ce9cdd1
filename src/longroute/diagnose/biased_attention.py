"""Architectures whose attention is their own code, with ALiBi as a bias in it: BLOOM and MPT, by hooks on every layer.

Their own forward still makes its time × time scores, also where an edit's output takes the place of its own.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from longroute.diagnose.heads import Heads

See = Callable[[Heads, Tensor], Tensor | None]
"""(heads, the layer's own output) to the output that takes its place, or None; both (batch head time dim)."""


@dataclass(frozen=True, eq=False)
class BiasedLayer:
    """Where one attention layer's heads come in and go out.

    `project` makes the fused query, key and value, `split` takes them apart, (batch head time dim) each, and `output`
    is what the heads' outputs, side by side, go through. `slope` is m of the layer's bias m · j, (head).
    """

    project: nn.Module
    output: nn.Module
    split: Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]
    scale: float
    slope: Tensor

    def heads(self, fused: Tensor) -> Heads:
        """The heads that the scores see: the bias m · j is m (c_i - c_j) with c_t = -t, up to a row's constant."""
        query, key, value = self.split(fused)
        charge = -torch.arange(query.shape[2], dtype=torch.float64, device=query.device).view(1, 1, -1)
        return Heads(query, key, value, self.scale, charge, self.slope.to(query.device))


def biased_layers(model: Any) -> list[BiasedLayer] | None:
    """The attention layers of a BLOOM or MPT model in order, None for any other architecture."""
    if model.config.model_type == "bloom":
        return _bloom_layers(model)
    return _mpt_layers(model) if model.config.model_type == "mpt" else None


@contextmanager
def hooked(layers: list[BiasedLayer], see: See) -> Iterator[None]:
    """Hooks that call `see` in every layer and put what it returns in the place of the layer's own output."""
    handles = [handle for layer in layers for handle in _hook(layer, see)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def bias_for(model: Any, time: int) -> Iterator[None]:
    """An MPT model with biases for `time` tokens: it makes as many as its configuration says, the same ones if more."""
    config = model.config
    before = getattr(config, "max_seq_len", None) if config.model_type == "mpt" else None
    if before is None or before >= time:
        yield
        return
    config.max_seq_len = time
    try:
        yield
    finally:
        config.max_seq_len = before


def _hook(layer: BiasedLayer, see: See):
    fused: list[Tensor] = []

    def projected(module: nn.Module, arguments: tuple[Tensor, ...], output: Tensor) -> None:
        fused[:] = [output]

    def attended(module: nn.Module, arguments: tuple[Tensor, ...]) -> tuple[Tensor] | None:
        heads, context = layer.heads(fused.pop()), arguments[0]
        own = context.unflatten(-1, (heads.query.shape[1], -1)).transpose(1, 2)
        changed = see(heads, own)
        return None if changed is None else (changed.to(context.dtype).transpose(1, 2).flatten(2),)

    return layer.project.register_forward_hook(projected), layer.output.register_forward_pre_hook(attended)


def _bloom_layers(model: Any) -> list[BiasedLayer]:
    base = model.transformer
    bias = base.build_alibi_tensor(torch.ones(1, 2, dtype=torch.int64), base.num_heads, torch.float32)
    attentions = [block.self_attention for block in base.h]
    return [BiasedLayer(a.query_key_value, a.dense, a._reshape, a.inv_norm_factor, _slope(bias)) for a in attentions]


def _mpt_layers(model: Any) -> list[BiasedLayer]:
    base = model.transformer
    slope = _slope(base.build_mpt_alibi_tensor(base.num_heads, 2))
    attentions = [block.attn for block in base.blocks]
    return [BiasedLayer(a.Wqkv, a.out_proj, _mpt_split(a), a.softmax_scale, slope) for a in attentions]


def _mpt_split(attention: Any) -> Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]:
    def split(fused: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if attention.clip_qkv:
            fused = fused.clamp(-attention.clip_qkv, attention.clip_qkv)
        query, key, value = (x.unflatten(-1, (attention.n_heads, -1)).transpose(1, 2) for x in fused.chunk(3, 2))
        return query, key, value

    return split


def _slope(bias: Tensor) -> Tensor:
    """m of every head, (head), from the model's own bias of two tokens, (head 1 2)."""
    return (bias[:, 0, 1] - bias[:, 0, 0]).double()
