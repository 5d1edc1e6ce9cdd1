"""What a step does: schedule, decay, accumulation, precision."""

import math
from pathlib import Path

import pytest
import tiny_training as tiny
import torch
from safetensors.torch import load_file

from longroute.data.windows import WindowSampler
from longroute.errors import InputError
from longroute.train import TrainSpec, loop
from longroute.train.loop import build_model, resolve_precision
from longroute.train.optimizer import build_optimizer, learning_rate


def test_learning_rate_by_hand():
    """Twenty steps, a fifth of them warm-up, peak 1: four rising, then a half cosine from 1 to a tenth."""
    spec = TrainSpec(length=1, batch=1, tokens=20, learning_rate=1.0, warmup=0.2)
    rates = [learning_rate(spec, step) for step in range(20)]
    assert rates[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    falling = [0.1 + 0.9 * (1 + math.cos(math.pi * n / 15)) / 2 for n in range(16)]
    assert rates[4:] == pytest.approx(falling, rel=1e-12)
    assert rates[-1] == pytest.approx(0.1)


@pytest.mark.parametrize("warmup", [0.0, 0.04])
def test_without_warmup_it_begins_at_the_peak(warmup: float):
    spec = TrainSpec(length=1, batch=1, tokens=10, learning_rate=2.0, warmup=warmup)
    assert learning_rate(spec, 0) == 2.0


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_very_short_schedules_stay_in_range(steps: int):
    spec = TrainSpec(length=1, batch=1, tokens=steps, learning_rate=1.0)
    assert all(0.1 <= learning_rate(spec, step) <= 1.0 for step in range(steps))


@pytest.mark.parametrize("encoding", ["learned-qkv+forget", "alibi"])
def test_only_matrices_decay(encoding: str):
    """With a gradient of zero, AdamW moves a parameter by its decay alone."""
    spec = tiny.run_spec(encoding, weight_decay=0.5, learning_rate=0.1)
    model = build_model(spec, tiny.CPU)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = build_optimizer(model, spec.train)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    assert any(p.ndim < 2 for p in model.parameters())
    for name, parameter in model.named_parameters():
        factor = 1 - 0.1 * 0.5 if parameter.ndim >= 2 else 1.0
        torch.testing.assert_close(parameter.detach(), before[name] * factor, rtol=1e-6, atol=0, msg=name)


def test_frozen_tensors_are_not_trained():
    for encoding in ("rope-qkv", "random-qkv", "alibi"):
        model = build_model(tiny.run_spec(encoding), tiny.CPU)
        assert not any("position" in name for name, _ in model.named_parameters())


def test_two_batches_of_eight_are_one_of_sixteen(tmp_path: Path):
    """The same windows and the same gradient, weighted by scored tokens: rows hold different numbers of them."""
    weights, losses = [], []
    for batch, accumulate in ((16, 1), (8, 2), (2, 8)):
        path = tmp_path / f"{accumulate}"
        spec = tiny.run_spec(batch=batch, accumulate=accumulate, tokens=5 * 256)
        records = tiny.train_in(path, spec)
        assert [record["tokens"] for record in records] == [256 * n for n in range(1, 6)]
        losses.append([record["loss"] for record in records])
        weights.append(load_file(path / "checkpoints" / "step-00000005" / "model.safetensors"))
    for other in (1, 2):
        assert losses[other] == pytest.approx(losses[0], rel=1e-5)
        for name, tensor in weights[0].items():
            torch.testing.assert_close(weights[other][name], tensor, rtol=1e-3, atol=1e-5, msg=name)


def test_the_loss_is_the_mean_over_scored_tokens(tmp_path: Path):
    """The first step's loss, by hand: no token predicts the beginning of the next document."""
    spec = tiny.run_spec(tokens=64)
    record = tiny.train_in(tmp_path / "run", spec)[0]
    batch = WindowSampler(tiny.shard(), length=16, batch=4, seed=0).draw(0)
    logits = build_model(spec, tiny.CPU)(batch.inputs, batch.packing).double()
    scored = batch.targets >= 0
    assert 0 < scored.sum() < 64
    expected = -logits.log_softmax(-1)[scored].gather(-1, batch.targets[scored][:, None]).mean()
    assert record["loss"] == pytest.approx(expected.item(), rel=1e-6)
    assert record["learning_rate"] == spec.train.learning_rate


def test_gradients_are_clipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The recorded norm is the one before clipping; what the optimiser sees has the norm asked for."""
    seen = []

    def build(model, spec):
        optimizer = build_optimizer(model, spec)
        optimizer.register_step_pre_hook(
            lambda *_: seen.append(torch.stack([p.grad.norm() for p in model.parameters()]).norm().item())
        )
        return optimizer

    monkeypatch.setattr(loop, "build_optimizer", build)
    records = tiny.train_in(tmp_path / "run", tiny.run_spec(clip=0.01, tokens=3 * 64))
    assert all(record["gradient_norm"] > 0.1 for record in records)
    assert seen == pytest.approx([0.01] * 3, rel=1e-3)


@pytest.mark.parametrize(("fast", "expected"), [(True, "bfloat16"), (False, "float32")])
def test_auto_precision_follows_the_processor(monkeypatch: pytest.MonkeyPatch, fast: bool, expected: str):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: fast)
    assert resolve_precision(TrainSpec()) == expected
    assert resolve_precision(TrainSpec(precision="float32")) == "float32"
    assert resolve_precision(TrainSpec(precision="bfloat16")) == "bfloat16"


def test_precision_reaches_the_products(tmp_path: Path):
    float32 = tiny.train_in(tmp_path / "float32", tiny.run_spec(tokens=128))
    bfloat16 = tiny.train_in(tmp_path / "bfloat16", tiny.run_spec(tokens=128, precision="bfloat16"))
    assert bfloat16[0]["loss"] != float32[0]["loss"]
    assert bfloat16[0]["loss"] == pytest.approx(float32[0]["loss"], rel=1e-2)


@pytest.mark.parametrize(
    "wrong",
    [
        *({name: 0} for name in ("length", "tokens", "batch", "accumulate", "record_every")),
        *({"learning_rate": rate} for rate in (0.0, math.nan)),
        *({"warmup": share} for share in (1.0, -0.1)),
        *({"beta2": share} for share in (1.0, -0.1)),
        {"clip": 0.0},
        {"weight_decay": -1.0},
    ],
)
def test_impossible_settings_are_refused(wrong: dict):
    with pytest.raises(InputError, match=next(iter(wrong)).replace("learning_rate", "rate").replace("clip", "rate")):
        tiny.run_spec(**wrong)


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_that_no_generator_takes_is_refused(seed: int):
    with pytest.raises(InputError, match="seed"):
        tiny.run_spec(seed=seed)


def test_a_tokenizer_larger_than_the_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tiny, "VOCABULARY", 41)
    small = tiny.run_spec()
    monkeypatch.setattr(tiny, "VOCABULARY", 42)
    with pytest.raises(InputError, match=r"42 types.*41"):
        tiny.train_in(tmp_path / "run", small)


def test_text_shorter_than_two_windows_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match=r"tokens; a context of 5000 needs at least 10001"):
        tiny.train_in(tmp_path / "run", tiny.run_spec(length=5000))
