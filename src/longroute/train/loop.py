"""The training loop: yields records, keeps checkpoints, and goes on from them bit for bit."""

import time
from collections.abc import Generator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from longroute.data.shards import TokenShard
from longroute.data.windows import IGNORED, Batch, WindowSampler
from longroute.errors import InputError
from longroute.model import Decoder, token_losses
from longroute.train.checkpoint import latest_checkpoint, load_model, load_optimizer, save_checkpoint
from longroute.train.folder import RunFolder
from longroute.train.optimizer import build_optimizer, learning_rate
from longroute.train.spec import RunSpec, TrainSpec

CHECKPOINT_SECONDS = 30.0


class NonFiniteError(ArithmeticError):
    """A run whose loss or gradient stopped being a number: `step` says where, the message what was seen."""

    def __init__(self, step: int, cause: str):
        super().__init__(f"non-finite at step {step}: {cause}")
        self.step = step


def resolve_precision(spec: TrainSpec) -> str:
    """The dtype of matrix products that `auto` stands for here: bfloat16 where the processor multiplies in it."""
    if spec.precision != "auto":
        return spec.precision
    if torch.cuda.is_available():
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    return "bfloat16" if torch.cpu._is_avx512_bf16_supported() else "float32"


def autocast(spec: TrainSpec, device: torch.device) -> AbstractContextManager[Any]:
    """The precision that a run is trained and evaluated in."""
    return torch.autocast(device.type, torch.bfloat16, enabled=resolve_precision(spec) == "bfloat16")


def build_model(spec: RunSpec, device: torch.device) -> Decoder:
    """The run's model at its start."""
    return Decoder(spec.model, spec.encoding, seed=spec.seed).to(device)


def train(
    spec: RunSpec, shard: TokenShard, folder: RunFolder, device: torch.device
) -> Generator[dict[str, Any], None, None]:
    """Train from the folder's newest checkpoint, or the start, to the end; yields the records that are new.

    The folder must be open. A checkpoint is written every CHECKPOINT_SECONDS, when the generator is closed and at the
    end; when it is written changes no number. Raises NonFiniteError; what was recorded until then stays.
    """
    if shard.vocab_size > spec.model.vocabulary:
        raise InputError(
            f"the tokenizer has {shard.vocab_size} types, the model a vocabulary of {spec.model.vocabulary}"
        )
    model = build_model(spec, device)
    optimizer = build_optimizer(model, spec.train)
    sampler = WindowSampler(shard, length=spec.train.length, batch=spec.train.batch, seed=spec.seed)
    step = _resume(folder, model, optimizer)
    saved, saved_at = step, time.monotonic()
    losses: list[Tensor] = []
    while step < spec.train.steps:
        norm = _take_step(spec.train, step, model, optimizer, sampler, losses, device)
        step += 1
        if step % spec.train.record_every and step < spec.train.steps:
            continue
        record = _record(spec.train, step, losses, norm)
        losses.clear()
        folder.records.add(record)
        if time.monotonic() - saved_at > CHECKPOINT_SECONDS:
            save_checkpoint(folder.checkpoints, step, model, optimizer)
            saved, saved_at = step, time.monotonic()
        try:
            yield record
        except GeneratorExit:  # stopped between two steps, where the state is whole
            if saved != step:
                save_checkpoint(folder.checkpoints, step, model, optimizer)
            raise
    if saved != step or step == 0:
        save_checkpoint(folder.checkpoints, step, model, optimizer)


def _resume(folder: RunFolder, model: Decoder, optimizer: torch.optim.Optimizer) -> int:
    """Back to the newest checkpoint, forgetting what was recorded after it; returns its step, 0 if there is none."""
    checkpoint = latest_checkpoint(folder.checkpoints)
    step = 0
    if checkpoint is not None:
        load_model(checkpoint, model)
        load_optimizer(checkpoint, optimizer)
        step = checkpoint.step
    folder.records.keep([r for r in folder.records.read() if r["record"] == "train" and r["step"] <= step])
    return step


def _take_step(
    spec: TrainSpec,
    step: int,
    model: Decoder,
    optimizer: torch.optim.Optimizer,
    sampler: WindowSampler,
    losses: list[Tensor],
    device: torch.device,
) -> Tensor:
    """One optimiser step; appends the step's mean loss to `losses`, returns the gradient's norm before clipping."""
    batches = [sampler.draw(step * spec.accumulate + part) for part in range(spec.accumulate)]
    scored = sum(int((batch.targets != IGNORED).sum()) for batch in batches)
    total = torch.zeros((), device=device)
    for batch in batches:
        loss = _summed_loss(model, batch, spec, device) / max(1, scored)
        loss.backward()
        total += loss.detach()
    parameters = list(model.parameters())
    norm = torch.nn.utils.get_total_norm(p.grad for p in parameters if p.grad is not None)
    if not torch.isfinite(total + norm):
        raise NonFiniteError(step + 1, _cause(model, total, norm, learning_rate(spec, max(0, step - 1))))
    torch.nn.utils.clip_grads_with_norm_(parameters, spec.clip, norm)
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(spec, step)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(total)
    return norm


def _summed_loss(model: Decoder, batch: Batch, spec: TrainSpec, device: torch.device) -> Tensor:
    packing = None if batch.packing is None else batch.packing.to(device)
    with autocast(spec, device):
        hidden = model.hidden_states(batch.inputs.to(device), packing)
        return token_losses(hidden, model.embedding.weight, batch.targets.to(device)).sum()


def _cause(model: Decoder, loss: Tensor, norm: Tensor, rate: float) -> str:
    weights = [name for name, p in model.named_parameters() if not torch.isfinite(p).all()]
    gradients = [
        name for name, p in model.named_parameters() if p.grad is not None and not torch.isfinite(p.grad).all()
    ]
    seen = f"loss {loss.item():g}, gradient norm {norm.item():g}, last learning rate {rate:g}"
    where = [f"weights of {weights[0]}"] if weights else [f"gradient of {gradients[0]}"] if gradients else []
    return "; first not finite: ".join([seen, *where])


def _record(spec: TrainSpec, step: int, losses: list[Tensor], norm: Tensor) -> dict[str, Any]:
    return {
        "record": "train",
        "step": step,
        "tokens": step * spec.tokens_per_step,
        "loss": torch.stack(losses).double().mean().item(),
        "learning_rate": learning_rate(spec, step - 1),
        "gradient_norm": norm.item(),
    }
