"""Runs small enough to train in milliseconds, on random text whose short documents share windows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from longroute.attention import parse_encoding
from longroute.data.shards import TokenShard
from longroute.model import ModelSpec
from longroute.train import RunFolder, RunSpec, TrainSpec, train

CPU = torch.device("cpu")
VOCABULARY = 40


def shard(documents: int = 60, seed: int = 0) -> TokenShard:
    """Documents of 1 to 40 random tokens, each closed by token 0."""
    generator = np.random.default_rng(seed)
    texts = [np.append(generator.integers(1, VOCABULARY, generator.integers(1, 41)), 0) for _ in range(documents)]
    offsets = np.cumsum([0, *map(len, texts)])
    names = tuple(f"document {i}" for i in range(documents))
    return TokenShard(np.concatenate(texts).astype(np.uint16), offsets, names, VOCABULARY, f"hash {seed}")


def run_spec(encoding: str = "learned-qkv+forget", *, seed: int = 0, **train: Any) -> RunSpec:
    """Twenty steps unless told otherwise, with a record each."""
    chosen = TrainSpec(length=16, tokens=20 * 64, batch=4, record_every=1, precision="float32")
    model = ModelSpec(layers=2, width=16, heads=2, kv_heads=1, head_dim=4, hidden=16, vocabulary=VOCABULARY)
    return RunSpec(parse_encoding(encoding), model, replace(chosen, **train), seed)


def tokenizer(folder: Path) -> Path:
    """A stand-in: a run's folder copies the tokenizer's file without reading it."""
    path = folder / "tokenizer.json"
    path.write_text("{}")
    return path


def train_in(path: Path, spec: RunSpec, *, stop_after: int | None = None) -> list[dict[str, Any]]:
    """Train in a folder, closing the generator after `stop_after` records; returns the new records."""
    folder, records = RunFolder(path), []
    text, words = (shard(), tokenizer(path.parent)) if spec.on_text else (None, None)
    with folder.open(spec, words):
        progress = train(spec, text, folder, CPU)
        for record in progress:
            records.append(record)
            if len(records) == stop_after:
                break
        progress.close()
    return records


def files(path: Path) -> dict[str, bytes]:
    """Everything that training leaves in a folder, by name, but for the lock and what describes the machine."""
    found = {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}
    return {name: data for name, data in found.items() if name not in (".lock", "versions.json")}
