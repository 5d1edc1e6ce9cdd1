"""A trained model on held-out text: the model's own losses, in order, the same at every length where they must be."""

from pathlib import Path

import numpy as np
import pytest
import torch

from longroute.attention import parse_encoding
from longroute.data.shards import TokenShard
from longroute.errors import InputError
from longroute.evaluate import EvaluateSpec, evaluate_run, load_run
from longroute.model import ModelSpec
from longroute.train import NonFiniteError, RunFolder, RunSpec, TrainSpec, train
from longroute.train.loop import build_model

CPU = torch.device("cpu")
MODEL = ModelSpec(layers=1, width=16, heads=2, kv_heads=1, head_dim=4, hidden=16, vocabulary=40)
TRAIN = TrainSpec(length=8, tokens=10 * 32, batch=4, precision="float32")


def text(seed: int = 0) -> TokenShard:
    """Two books of 400 random tokens."""
    tokens = np.random.default_rng(seed).integers(1, 40, 802)
    tokens[[400, 801]] = 0
    return TokenShard(tokens.astype(np.uint16), np.array([0, 401, 802]), ("first", "second"), 40, "")


@pytest.mark.parametrize("encoding", ["none", "random-qkv", "learned-qk+forget"])
def test_losses_are_the_models_own(encoding: str):
    """Against logits of every window by itself."""
    model = build_model(RunSpec(parse_encoding(encoding), MODEL, TRAIN), CPU).eval()
    spans = list(evaluate_run(model, TRAIN, text(), EvaluateSpec(4, spans=2), device=CPU))
    assert [(span[0]["book"], span[0]["span"]) for span in spans] == [
        (b, s) for b in ("first", "second") for s in (0, 1)
    ]
    tokens = torch.from_numpy(text().document(0)[200:233].astype(np.int64))
    for record in spans[1]:
        length, windows = record["length"], []
        for start in range(0, 32, length):
            logits = model(tokens[None, start : start + length])[0].double()
            windows.append(-logits.log_softmax(-1).gather(1, tokens[start + 1 : start + length + 1, None])[:, 0])
        if record["protocol"] == "whole":
            assert record["nats"] == pytest.approx(torch.cat(windows).sum().item(), rel=1e-5)
            assert record["tokens"] == 32


def test_it_goes_on_after_the_spans_that_are_done():
    model = build_model(RunSpec(parse_encoding("alibi"), MODEL, TRAIN), CPU)
    spec = EvaluateSpec(2, spans=3)
    every = list(evaluate_run(model, TRAIN, text(), spec, device=CPU))
    assert list(evaluate_run(model, TRAIN, text(), spec, device=CPU, done=4)) == every[4:]
    assert len(every) == 6


def test_a_loss_that_is_not_a_number_is_an_error():
    model = build_model(RunSpec(parse_encoding("alibi"), MODEL, TRAIN), CPU)
    torch.nn.init.constant_(model.norm.weight, torch.inf)
    with pytest.raises(NonFiniteError, match="step 10: evaluation of 'first', span 0, at length 8"):
        next(evaluate_run(model, TRAIN, text(), EvaluateSpec(2), device=CPU))


def test_only_a_finished_run_is_loaded(tmp_path: Path):
    folder, spec = RunFolder(tmp_path / "run"), RunSpec(parse_encoding("rope-qk"), MODEL, TRAIN)
    with pytest.raises(InputError, match=r"config\.json"):
        load_run(folder, CPU)
    (tmp_path / "tokenizer.json").write_text("{}")
    with folder.open(spec, tmp_path / "tokenizer.json"):
        with pytest.raises(InputError, match=r"run: trained for 0 of 10 steps; finish it with `longroute train`"):
            load_run(folder, CPU)
        for _ in train(spec, text(), folder, CPU):
            pass
    model = load_run(folder, CPU)
    assert not model.training
    first = next(evaluate_run(model, TRAIN, text(), EvaluateSpec(2), device=CPU))
    untrained = next(evaluate_run(build_model(spec, CPU), TRAIN, text(), EvaluateSpec(2), device=CPU))
    assert first != untrained
    weights = next(folder.checkpoints.rglob("model.safetensors"))
    weights.write_bytes(b"")
    with pytest.raises(InputError, match=r"model\.safetensors: not a readable safetensors file"):
        load_run(folder, CPU)
