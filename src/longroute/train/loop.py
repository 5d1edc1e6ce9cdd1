"""The training loop: yields records, keeps checkpoints, and goes on from them bit for bit."""

import time
from collections.abc import Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from longroute.data.shards import TokenShard
from longroute.data.windows import IGNORED, Batch
from longroute.errors import InputError
from longroute.model import Decoder, token_losses
from longroute.model.loss import answer_losses
from longroute.train.batches import Batches, next_context, run_batches
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
    spec: RunSpec, shard: TokenShard | None, folder: RunFolder, device: torch.device
) -> Generator[dict[str, Any], None, None]:
    """Train from the folder's newest checkpoint, or the start, to the end; yields the records that are new.

    The folder must be open. A checkpoint is written every CHECKPOINT_SECONDS, when the generator is closed and at the
    end; when it is written changes no number. A task that needs no text takes no `shard`. Raises InputError, and
    NonFiniteError; what was recorded until then stays.
    """
    batches = run_batches(spec, shard, folder)
    model = build_model(spec, device)
    optimizer = build_optimizer(model, spec.train)
    step, record = _resume(folder, model, optimizer)
    if spec.task is not None and step and (record is None or record["step"] != step):
        raise InputError(f"{folder.records.path}: no record of step {step}, which the curriculum goes on from")
    saved, saved_at = step, time.monotonic()
    seen: list[_Step] = []
    while step < spec.train.steps:
        context = next_context(record, batches.shortest, spec.train.length)
        seen.append(_take_step(spec, step, model, optimizer, batches, context, device))
        step += 1
        if step % spec.train.record_every and step < spec.train.steps:
            continue
        record = _record(spec, step, seen, context)
        seen.clear()
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


@dataclass(frozen=True)
class _Step:
    """What an optimiser step saw: its mean loss, the gradient's norm before clipping, the share of right answers."""

    loss: Tensor
    norm: Tensor
    accuracy: Tensor


def _resume(folder: RunFolder, model: Decoder, optimizer: torch.optim.Optimizer) -> tuple[int, dict[str, Any] | None]:
    """Back to the newest checkpoint, forgetting what was recorded after it: its step, 0 if none, and its record."""
    checkpoint = latest_checkpoint(folder.checkpoints)
    step = 0
    if checkpoint is not None:
        load_model(checkpoint, model)
        load_optimizer(checkpoint, optimizer)
        step = checkpoint.step
    records = [r for r in folder.records.read() if r["record"] == "train" and r["step"] <= step]
    folder.records.keep(records)
    return step, records[-1] if records else None


def _take_step(
    run: RunSpec,
    step: int,
    model: Decoder,
    optimizer: torch.optim.Optimizer,
    batches: Batches,
    context: int,
    device: torch.device,
) -> _Step:
    """One optimiser step."""
    spec = run.train
    drawn = [batches.draw(step * spec.accumulate + part, context) for part in range(spec.accumulate)]
    scored = max(1, sum(int((batch.targets != IGNORED).sum()) for batch in drawn))
    total, right = torch.zeros((), device=device), torch.zeros((), device=device)
    for batch in drawn:
        loss, hits = _summed_loss(model, batch, run, device)
        (loss / scored).backward()
        total += loss.detach() / scored
        right += hits / scored
    parameters = list(model.parameters())
    norm = torch.nn.utils.get_total_norm(p.grad for p in parameters if p.grad is not None)
    if not torch.isfinite(total + norm):
        raise NonFiniteError(step + 1, _cause(model, total, norm, learning_rate(spec, max(0, step - 1))))
    torch.nn.utils.clip_grads_with_norm_(parameters, spec.clip, norm)
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(spec, step)
    optimizer.step()
    optimizer.zero_grad()
    return _Step(total, norm, right)


def _summed_loss(model: Decoder, batch: Batch, run: RunSpec, device: torch.device) -> tuple[Tensor, Tensor]:
    """The batch's loss and, of a task, how many of its targets were the likeliest token."""
    packing = None if batch.packing is None else batch.packing.to(device)
    targets = batch.targets.to(device)
    with autocast(run.train, device):
        hidden = model.hidden_states(batch.inputs.to(device), packing)
        if run.task is None:
            return token_losses(hidden, model.embedding.weight, targets).sum(), torch.zeros((), device=device)
        losses, hits = answer_losses(hidden, model.embedding.weight, targets)
        return losses.sum(), hits.sum()


def _cause(model: Decoder, loss: Tensor, norm: Tensor, rate: float) -> str:
    weights = [name for name, p in model.named_parameters() if not torch.isfinite(p).all()]
    gradients = [
        name for name, p in model.named_parameters() if p.grad is not None and not torch.isfinite(p.grad).all()
    ]
    seen = f"loss {loss.item():g}, gradient norm {norm.item():g}, last learning rate {rate:g}"
    where = [f"weights of {weights[0]}"] if weights else [f"gradient of {gradients[0]}"] if gradients else []
    return "; first not finite: ".join([seen, *where])


def _record(run: RunSpec, step: int, seen: list[_Step], context: int) -> dict[str, Any]:
    spec = run.train
    record = {
        "record": "train",
        "step": step,
        "tokens": step * spec.tokens_per_step,
        "loss": torch.stack([one.loss for one in seen]).double().mean().item(),
        "learning_rate": learning_rate(spec, step - 1),
        "gradient_norm": seen[-1].norm.item(),
    }
    if run.task is not None:
        accuracy = torch.stack([one.accuracy for one in seen]).double().mean().item()
        record |= {"context": context, "accuracy": accuracy}
    return record
