"""What a decoded token costs: its frame, beside its attention to the cached tokens."""

from collections.abc import Callable

import torch
from torch import Tensor

from longroute.attention import parse_encoding
from longroute.attention.blockwise import masked_attention
from longroute.bench.row import Job, Limited, Timed
from longroute.transport import LayerShape, StepInputs

SHAPE = LayerShape(width=512, heads=8, kv_heads=8, head_dim=64, vocabulary=2048)


def decoding_rows(device: torch.device) -> list[Timed | Limited]:
    """One more frame, its step given, against the attention of one token to 8,192; of one sequence and of 16 at once.

    A frame is about twenty small operations, so that of one sequence it is their overhead that is measured.
    """
    rows: list[Timed | Limited] = []
    for batch in (1, 16):
        shape = f"{batch} × 8192 cached tokens, {SHAPE.heads} × {SHAPE.head_dim}"
        attention = _cached_attention(batch, 8192, device)
        for name in ("rope-qkv", "learned-qkv", "householder-qkv"):
            frame = _one_frame(name, batch, device)
            rows.append(Timed(f"{name} frame of a decoded token", "its attention", shape, 0.02, frame, attention))
    return rows


def _one_frame(name: str, batch: int, device: torch.device) -> Callable[[], Job]:
    def build() -> Job:
        position = parse_encoding(name).build(SHAPE).to(device)
        with torch.inference_mode():
            steps = position.steps(_inputs(batch, 1, device))
            before = position.steps.frame(position.steps(_inputs(batch, 64, device)), torch.float32).end

        @torch.inference_mode()
        def job() -> Tensor | None:
            return position.steps.frame(steps, torch.float32, before=before).end

        return job

    return build


def _cached_attention(batch: int, cached: int, device: torch.device) -> Callable[[], Job]:
    def build() -> Job:
        query = torch.randn(batch, SHAPE.heads, 1, SHAPE.head_dim, device=device)
        key, value = torch.randn(2, batch, SHAPE.heads, cached, SHAPE.head_dim, device=device)

        @torch.inference_mode()
        def job() -> Tensor:
            return masked_attention(query, key, value, SHAPE.head_dim**-0.5)

        return job

    return build


def _inputs(batch: int, time: int, device: torch.device) -> StepInputs:
    ids = torch.zeros(batch, time, dtype=torch.int64, device=device)
    return StepInputs(torch.randn(batch, time, SHAPE.width, device=device), ids, ids, time)
