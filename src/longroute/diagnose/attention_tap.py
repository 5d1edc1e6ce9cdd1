"""The tap: transformers' attention interface with the same arguments and bits, shown to a visitor or replaced."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from longroute.diagnose.biased_attention import BiasedLayer, hooked
from longroute.diagnose.edit import Edit
from longroute.diagnose.heads import Heads
from longroute.diagnose.traced import Visit
from longroute.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_INTERFACE = "longroute"
_MASK_AT_ONCE = 1 << 22


@dataclass(eq=False)
class AttentionTap:
    """What one forward shows and changes. Layers are counted as they come; `masks` are those read, with windows."""

    kind: str
    visit: Visit | None
    edit: Edit | None
    layers: int = 0
    masks: dict[int, tuple[Tensor, int | None]] = field(default_factory=dict)
    modules: set[nn.Module] = field(default_factory=set)

    def see(self, heads: Heads, own: Tensor | None) -> Tensor | None:
        """Shows a layer's heads and own output; returns the edit's output, if there is an edit."""
        layer, self.layers = self.layers, self.layers + 1
        if self.visit is not None and own is not None:
            self.visit(layer, heads, own)
        return None if self.edit is None else self.edit(layer, heads)

    def window(self, mask: Tensor, time: int) -> int | None:
        """`_mask_window`, once for every mask: layers share them, and kept ones keep their id."""
        if id(mask) not in self.masks:
            self.masks[id(mask)] = (mask, _mask_window(mask, time, self.kind))
        return self.masks[id(mask)][1]


active_tap: ContextVar[AttentionTap | None] = ContextVar("longroute_tap", default=None)


@functools.cache
def require_transformers() -> None:
    """Makes the tap known to transformers, under a name that only a tapped model has, with the masks of sdpa."""
    needed = "models of other libraries need transformers 5 or later: pip install 'longroute[transformers]'"
    try:
        from transformers import __version__
        from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
        from transformers.modeling_utils import AttentionInterface
    except ImportError as error:
        raise InputError(needed) from error
    if int(__version__.split(".")[0]) < 5:  # the report of what was loaded is another one
        raise InputError(f"{needed} (not {__version__})")
    AttentionInterface.register(_INTERFACE, _attention_forward)
    AttentionMaskInterface.register(_INTERFACE, sdpa_mask)


@contextmanager
def tapped(model: PreTrainedModel, biased: list[BiasedLayer] | None, tap: AttentionTap | None) -> Iterator[None]:
    if tap is None:
        yield
    elif biased is not None:
        # hooks of an outer call of the same model stay silent while an inner one is active
        with hooked(biased, lambda heads, own: tap.see(heads, own) if active_tap.get() is tap else None):
            yield
    else:
        before = str(model.config._attn_implementation)
        model.set_attn_implementation(_INTERFACE)
        try:
            yield
        finally:
            model.set_attn_implementation(before)


def _attention_forward(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any
):
    """transformers' sdpa attention with the same arguments, shown to the tap; or the tap's edit instead."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    tap = active_tap.get()
    if tap is None:
        return sdpa_attention_forward(module, query, key, value, mask, **options)
    if module in tap.modules:
        raise InputError(f"{tap.kind} goes through one attention module twice, which isn't supported")
    tap.modules.add(module)
    heads = _heads(tap, module, query, key, value, mask, options)
    output = None
    if tap.visit is not None or tap.edit is None:
        output, _ = sdpa_attention_forward(module, query, key, value, mask, **options)
    changed = tap.see(heads, None if output is None else output.transpose(1, 2))
    if changed is not None:
        output = changed.to(query.dtype).transpose(1, 2).contiguous()
    return output, None


def _heads(
    tap: AttentionTap,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    options: dict[str, Any],
) -> Heads:
    """What attention was called with, as Heads. Raises InputError, naming the architecture, for what they can't say."""
    time = query.shape[2]
    beyond = {
        "softcap": "caps its scores",
        "s_aux": "has attention sinks",
        "position_bias": "adds a bias to its scores",
    }
    for option, what in beyond.items():
        if options.get(option) is not None:
            raise InputError(f"{tap.kind} {what} ({option}), which isn't supported")
    if key.shape[2] != time or value.shape[2] != time:
        raise InputError(f"{tap.kind} attends to other tokens than its own (a cache or cross-attention)")
    causal = options.get("is_causal")
    causal = getattr(module, "is_causal", True) if causal is None else causal
    if mask is None and not causal:
        raise InputError(f"{tap.kind} has attention that isn't causal")
    scale = options.get("scaling")
    scale = query.shape[3] ** -0.5 if scale is None else float(scale)
    return Heads(query, key, value, scale, window=None if mask is None else tap.window(mask, time))


def _mask_window(mask: Tensor, time: int, kind: str) -> int | None:
    """The sliding window that a mask (batch|1 1 time time) is, None for all of the past. InputError for others."""
    if mask.dtype != torch.bool or mask.shape[2:] != (time, time):
        raise InputError(f"{kind} has attention masks that aren't true or false for each token, which isn't supported")
    window = int(mask[0, 0, -1].sum())
    key = torch.arange(time, device=mask.device)
    for rows in key.split(max(1, _MASK_AT_ONCE // (time * mask.shape[0]))):
        distance = rows[:, None] - key
        if (mask[:, :, rows] != (distance >= 0) & (distance < window)).any():
            raise InputError(f"{kind} has attention masks beyond causal and sliding ones, which isn't supported")
    return window if window < time else None
