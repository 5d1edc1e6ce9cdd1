"""AdamW and its learning rate."""

import math

import torch
from torch import nn

from longroute.train.spec import TrainSpec


def build_optimizer(model: nn.Module, spec: TrainSpec) -> torch.optim.AdamW:
    """AdamW over the model's parameters; only matrices decay."""
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": spec.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=spec.learning_rate, betas=(0.9, spec.beta2), fused=True)


def learning_rate(spec: TrainSpec, step: int) -> float:
    """Of step 0, 1, …: linear to the peak over the warm-up, then a cosine to a tenth of it at the last step."""
    warmup = max(1, round(spec.warmup * spec.steps))
    if step < warmup:
        return spec.learning_rate * (step + 1) / warmup
    progress = (step - warmup) / max(1, spec.steps - 1 - warmup)
    return spec.learning_rate * (0.55 + 0.45 * math.cos(math.pi * min(1.0, progress)))
