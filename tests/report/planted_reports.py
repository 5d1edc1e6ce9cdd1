"""Summaries and records with known answers, for the report's tests."""

import math
from typing import Any

LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096, 8192)


def row(
    name: str,
    fit: float = 70.0,
    growth: float = 1.0,
    *,
    seed: int = 0,
    transport: str = "rope",
    values: bool = False,
    control: str = "none",
    lengths: tuple[int, ...] = LENGTHS,
    interval: bool = False,
    spread: float | None = None,
) -> dict[str, Any]:
    """A row whose tail ratio is growth to the share of the longest length that log2 of the multiple is."""
    steps = max(1, len(lengths) - 1)
    tail_ratio = {str(n): growth ** (i / steps) for i, n in enumerate(lengths)}
    ratio = {n: value * 0.98 if n != str(lengths[0]) else 1.0 for n, value in tail_ratio.items()}
    measures = {
        "perplexity": {n: fit * value for n, value in ratio.items()},
        "ratio": ratio,
        "tail_perplexity": {n: fit * 0.97 * value for n, value in tail_ratio.items()},
        "tail_ratio": tail_ratio,
    }
    edges = {m: {n: [v * 0.97, v * 1.03] for n, v in by.items()} for m, by in measures.items()}
    bootstrap = {"level": 0.95, "resamples": 2000, "spans": 8, "books": 3, **edges}
    angles = {} if spread is None else {"fastest": 1.0, "slowest": spread}
    return {
        "encoding": name,
        "transport": transport,
        "values": values,
        "control": control,
        "seed": seed,
        "parameters": 1_063_000,
        "train_length": lengths[0],
        "train_tokens": 4_000_000,
        "status": "ok",
        "reason": None,
        "spec": {"transport": {"kind": transport, "by": "token", **angles}, "control": {"kind": control}},
        **measures,
        "interval": bootstrap if interval else None,
        "scored_tokens": {str(n): 65_536 for n in lengths},
        "tail_scored_tokens": {str(n): 4_096 for n in lengths},
    }


def failed_row(name: str, seed: int = 0, reason: str = "non-finite loss at step 12 (nan)") -> dict[str, Any]:
    """A row of a run that did not end: every measure is an empty dict."""
    measures = {m: {} for m in ("perplexity", "ratio", "tail_perplexity", "tail_ratio")}
    counts = {"scored_tokens": {}, "tail_scored_tokens": {}, "interval": None}
    return {**row(name, seed=seed), **measures, **counts, "status": "failed", "reason": reason}


def summary(*rows: dict[str, Any]) -> dict[str, Any]:
    """A whole summary around these rows."""
    return {
        "rows": list(rows),
        "schema": 1,
        "corpus": {
            "name": "embedded books",
            "train": ["Moby Dick", "Middlemarch", "The Origin of Species"],
            "heldout": ["Walden", "Emma", "Opticks"],
            "train_tokens": 1_630_000,
            "heldout_tokens": 412_000,
            "vocabulary": 2048,
            "hash": "9f3c5d1e77aa",
        },
        "versions": {"longroute": "0.1.0", "torch": "2.13.0", "python": "3.11.7"},
        "preset": "mini",
        "model": {"layers": 4, "width": 128, "heads": 4, "kv_heads": 4},
        "training": {"tokens": 4_000_000, "optimiser": {"name": "adamw", "learning_rate": 0.003}},
    }


def training_records(*rows: dict[str, Any], steps: int = 120) -> list[dict[str, Any]]:
    """Loss records of these rows' runs, falling to the loss that their perplexity says, and evaluations."""
    records: list[dict[str, Any]] = []
    for at, one in enumerate(rows):
        run = {
            "run": f"{one['encoding']}-seed{one['seed']}",
            "encoding": one["encoding"],
            "seed": one["seed"],
        }
        end = math.log(one["perplexity"].get("64") or 90.0)
        for step in range(1, steps + 1):
            noise = 0.03 * math.sin(12.9 * step + 3 * at)
            loss = end + 3.4 * math.exp(-9 * step / steps) + noise
            common = {"step": step, "tokens": step * 4_000_000 // steps, "learning_rate": 1e-3}
            records.append({"record": "train", **run, **common, "loss": loss, "gradient_norm": 1.0})
        for span in range(2):
            for book in ("Walden", "Emma"):
                where = {
                    "book": book,
                    "span": span,
                    "length": 64,
                    "protocol": "whole",
                    "nats": 1.0,
                    "tokens": 1,
                }
                records.append({"record": "evaluation", **run, **where})
    return records


def trial() -> list[dict[str, Any]]:
    """The fourteen encodings of DESIGN's first trial, near its numbers, with a family for the dial."""
    learned = {"transport": "learned", "interval": True}
    random = {"transport": "random", "interval": True}
    gated = {**learned, "values": True, "control": "forget"}
    return [
        row("rope-qk", 68.9, 1.97, interval=True),
        row("random-qk", 79.2, 1.53, **random, spread=0.01),
        row("random-narrow-qk", 71.5, 1.83, **random, spread=0.0005),
        row("random-wide-qk", 86.0, 1.31, **random, spread=0.2),
        row("random-full-qk", 93.1, 1.22, **random, spread=1.0),
        row("random-qkv", 78.4, 1.61, **random, values=True, spread=0.01),
        row("learned-wide-qk", 82.3, 1.39, **learned),
        row("learned-wide-qkv", 82.2, 1.39, **learned, values=True),
        row("learned-qk", 67.8, 2.34, **learned),
        row("alibi", 73.8, 0.95, transport="none", control="alibi", interval=True),
        row("none", 91.0, 3.6, transport="none", interval=True),
        row("rope-qk+forget", 67.4, 0.93, control="forget", interval=True),
        row("learned-wide-qkv+forget", 71.7, 0.95, **gated),
        row("learned-wide-qkv+alibi", 79.6, 0.955, **{**gated, "control": "alibi"}),
        row("learned-qkv+forget", 64.2, 0.93, **gated),
        row("householder-qk", 76.0, 1.27, transport="householder", interval=True),
        failed_row("path+log-distance"),
    ]
