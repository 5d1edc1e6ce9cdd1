"""What a decoded token costs, its frame beside its attention, and how far its logits are from the full forward's."""

from collections.abc import Callable

import torch
from torch import Tensor

from longroute.attention import Encoding, encoding_name, parse_encoding
from longroute.attention.blockwise import masked_attention
from longroute.attention.names import CONTROLS, TRANSPORTS
from longroute.bench.row import Job, Limited, Timed
from longroute.control import NoControl
from longroute.model import Decoder, Decoding, ModelSpec
from longroute.model.decoder import Attention
from longroute.transport import LayerShape, StepInputs

LONG, PREFILL = 8192, 1000
SMALL = ModelSpec(layers=2, width=64, heads=2, kv_heads=2, head_dim=32, hidden=128, vocabulary=256)
SHAPE = LayerShape(width=512, heads=8, kv_heads=8, head_dim=64, vocabulary=2048)


def decoding_rows(device: torch.device) -> list[Timed | Limited]:
    """One more frame, its step given, against the attention of one token to 8,192; and logits against the whole's.

    A frame is about twenty small operations, so that of one sequence it is their overhead that is measured.
    """
    rows: list[Timed | Limited] = []
    for batch in (1, 16):
        shape = f"{batch} × 8192 cached tokens, {SHAPE.heads} × {SHAPE.head_dim}"
        attention = _cached_attention(batch, 8192, device)
        for name in ("rope-qkv", "learned-qkv", "householder-qkv"):
            frame = _one_frame(name, batch, device)
            rows.append(Timed(f"{name} frame of a decoded token", "its attention", shape, 0.02, frame, attention))
    shape = f"{LONG} tokens, the last {LONG - PREFILL} one by one, float32"
    for encoding in _every_kind():
        measure = _decoded_error(encoding, device)
        rows.append(Limited(f"{encoding_name(encoding)} decoded logits", "1e-4 from the full forward", shape, measure))
    return rows


def _every_kind() -> list[Encoding]:
    """Every transport, with values where it moves them, and every control."""
    alone = [Encoding(kind(), "qkv" in kind.moves) for kind in TRANSPORTS.values()]
    return alone + [Encoding(control=kind()) for kind in CONTROLS.values() if kind is not NoControl]


def _decoded_error(encoding: Encoding, device: torch.device) -> Callable[[], float]:
    """Largest difference of any logit, as a share of 1e-4, of a model whose scores have trained ones' size."""

    def measure() -> float:
        model = Decoder(SMALL, encoding, seed=1).to(device).eval()
        ids = torch.randint(SMALL.vocabulary, (1, LONG), generator=torch.Generator().manual_seed(0)).to(device)
        with torch.no_grad():
            for module in model.modules():
                if isinstance(module, Attention):
                    module.project.weight.mul_(10)
            whole = model(ids)
            decoding = Decoding(model)
            first, *rest = ids.split([PREFILL, *[1] * (LONG - PREFILL)], 1)
            decoded = torch.cat([decoding.logits(part) for part in (first, *rest)], 1)
        return (decoded - whole).abs().max().item() / 1e-4

    return measure


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
