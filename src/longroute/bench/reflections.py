"""Attention through reflections whose vectors are given, forward and backward, and what it is compared with."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import Tensor

from longroute.attention import Route, attend
from longroute.bench.row import Job, Limited, Timed
from longroute.transport import Frame, IdentityFrame, RotationFrame
from longroute.transport.path_scores import PathScores
from longroute.transport.phase import accumulate
from longroute.transport.reflection_frame import ReflectionFrame


def reflection_rows(heads: int, dim: int, device: torch.device) -> list[Timed | Limited]:
    """Reflections with given vectors against RoPE through SDPA, and against a naive PaTH that everybody can install."""
    shape = f"L=4096, {heads} × {dim}, vectors given"
    rope = rope_attention(heads, 4096, dim, device)
    rows: list[Timed | Limited] = []
    for name, values, goal in (("householder qk", False, 1.15), ("householder qkv", True, 1.25)):
        ours = householder_attention(heads, 4096, dim, device, values=values)
        rows.append(Timed(f"{name} attention", "RoPE through SDPA", shape, goal, ours, rope))
    naive, theirs = "flash-linear-attention's naive PaTH", naive_path_attention(2, 4096, 64, device)
    for name, ours, goal in (
        ("householder qk attention", householder_attention(2, 4096, 64, device, values=False), 1 / 20),
        ("path attention", path_attention(2, 4096, 64, device), 1 / 5),
    ):
        rows.append(Timed(name, naive, "B1 H2 D64 T4096, once", goal, ours, theirs, pairs=1))
    return rows


def householder_attention(
    heads: int, length: int, dim: int, device: torch.device, *, values: bool
) -> Callable[[], Job]:
    """One reflection a token."""
    return _attention(heads, length, dim, device, lambda w: ReflectionFrame(w[..., None, :], torch.float32), values)


def path_attention(heads: int, length: int, dim: int, device: torch.device) -> Callable[[], Job]:
    """β = 1 for every token."""
    return _attention(
        heads, length, dim, device, lambda w: IdentityFrame(pairs=PathScores(F.normalize(w, dim=-1))), False
    )


def rope_attention(heads: int, length: int, dim: int, device: torch.device) -> Callable[[], Job]:
    """The same step for every token, as RoPE's."""
    angle = torch.ones(1, 1, length, dim // 2, device=device)
    return _attention(heads, length, dim, device, lambda _: RotationFrame(*accumulate(angle)), False)


def naive_path_attention(heads: int, length: int, dim: int, device: torch.device) -> Callable[[], Job]:
    """PaTH in plain torch as flash-linear-attention 0.6.0 has it, an extra; raises ImportError without it."""

    def build() -> Job:
        naive = _naive_module()
        query, key, value, vectors = _tensors(heads, length, dim, device)
        strength = torch.ones(1, length, heads, device=device, requires_grad=True)
        gate, grad = torch.zeros(1, length, heads, device=device), torch.randn(1, length, heads, dim, device=device)
        parts = [x.transpose(1, 2) for x in (query, key, value)]

        def job() -> None:
            w = F.normalize(vectors, dim=-1).transpose(1, 2)
            naive.naive_path_attn(*parts, w, strength, gate, dim**-0.5).backward(grad)

        return job

    return build


def _naive_module() -> ModuleType:
    """The file alone: its package needs Triton."""
    package = importlib.util.find_spec("fla")
    if package is None or not package.submodule_search_locations:
        raise ImportError("flash-linear-attention isn't installed")
    path = Path(package.submodule_search_locations[0]) / "ops" / "path_attn" / "naive.py"
    spec = importlib.util.spec_from_file_location("naive_path_attention", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} isn't there")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _tensors(heads: int, length: int, dim: int, device: torch.device) -> tuple[Tensor, ...]:
    return tuple(torch.randn(1, heads, length, dim, device=device, requires_grad=True) for _ in range(4))


def _attention(
    heads: int, length: int, dim: int, device: torch.device, frame: Callable[[Tensor], Frame], values: bool
) -> Callable[[], Job]:
    def build() -> Job:
        query, key, value, vectors = _tensors(heads, length, dim, device)
        grad = torch.randn_like(query)
        return lambda: attend(query, key, value, Route(frame(vectors), values)).backward(grad)

    return build
