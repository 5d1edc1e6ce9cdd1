"""Tracing a model of Longroute's own: forward hooks on every layer's attention and on its steps."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from longroute.attention import Encoding, Route, encoding_name
from longroute.data.tokenizer import encode, load_tokenizer
from longroute.diagnose.edit import Edit
from longroute.diagnose.heads import Heads
from longroute.diagnose.traced import Anatomy, Visit, weights_digest
from longroute.errors import InputError
from longroute.evaluate import load_run
from longroute.evaluate.run import model_scorer
from longroute.model import Decoder
from longroute.model.decoder import Attention
from longroute.train import RunFolder, TrainSpec
from longroute.train.loop import autocast


class TracedDecoder:
    """A trained Decoder, in the precision that it was trained in."""

    def __init__(self, model: Decoder, train: TrainSpec, tokenizer: Tokenizer, device: torch.device):
        self.model, self.tokenizer, self.device, self._train = model, tokenizer, device, train
        self._score = model_scorer(model, train, device)
        spec = model.spec
        self.anatomy = Anatomy(
            name=encoding_name(model.encoding),
            kind="longroute",
            train_length=train.length,
            layers=spec.layers,
            heads=spec.heads,
            kv_heads=spec.kv_heads,
            head_dim=spec.head_dim,
            weights=weights_digest(model),
            untraced=_untraced(model.encoding),
        )

    def encode(self, text: str) -> Tensor:
        return torch.from_numpy(encode(self.tokenizer, text).astype("int64"))

    def losses(
        self, inputs: Tensor, targets: Tensor, *, visit: Visit | None = None, edit: Edit | None = None
    ) -> Tensor:
        with _hooked(self._attentions(), visit, edit):
            return self._score(inputs, targets)

    def steps(self, inputs: Tensor) -> list[Tensor | None]:
        caught: list[Any] = []
        modules = [attention.position.steps for attention in self._attentions()]
        handles = [module.register_forward_hook(lambda _, __, steps: caught.append(steps)) for module in modules]
        try:
            with torch.inference_mode(), autocast(self._train, self.device):
                self.model.hidden_states(inputs.to(self.device))
        finally:
            for handle in handles:
                handle.remove()
        if not self.model.encoding.transport.moves:
            return [None] * len(modules)
        heads, time = self.anatomy.kv_heads, inputs.shape[1]
        matrices = [module.matrix(steps) for module, steps in zip(modules, caught, strict=True)]
        return [matrix.expand(len(inputs), heads, time, -1, -1) for matrix in matrices]

    def _attentions(self) -> list[Attention]:
        return [block.attention for block in self.model.blocks]  # type: ignore[union-attr]  # ModuleList forgets its type


def _untraced(encoding: Encoding) -> str | None:
    if not encoding.transport.moves or "qkv" in encoding.transport.moves:
        return None
    return f"{encoding.transport.name} has no global frame, so its scores aren't dot products of queries and keys"


def load_decoder(path: Path, device: torch.device) -> TracedDecoder:
    """The trained model of a run's folder. Raises InputError as `load_run` does, and for a weight that isn't finite."""
    folder = RunFolder(path)
    model = load_run(folder, device)
    for name, weight in model.named_parameters():
        if not weight.isfinite().all():
            raise InputError(f"{path}: the weight {name} has numbers that aren't finite")
    return TracedDecoder(model, folder.spec().train, load_tokenizer(folder.tokenizer), device)


def pulled(query: Tensor, key: Tensor, value: Tensor, route: Route) -> Heads:
    """What `attend` is called with, as Heads in the route's global frame."""
    charge = route.charge
    return Heads(
        query=route.frame.pull(query),
        key=route.frame.pull(key),
        value=route.frame.pull(value) if route.values else value,
        scale=value.shape[-1] ** -0.5,
        charge=None if charge is None else charge.accumulated(),
        slope=None if charge is None else charge.slope,
        pairwise=route.pairwise,
        frame=route.frame,
        values_ride=route.values,
    )


@contextmanager
def _hooked(attentions: list[Attention], visit: Visit | None, edit: Edit | None) -> Iterator[None]:
    """Hooks that show every layer's heads to `visit` and put the edit's output in the place of the layer's own."""
    handles = []
    if visit is not None or edit is not None:
        hooks = [_hook(layer, visit, edit) for layer in range(len(attentions))]
        handles = [a.attend.register_forward_hook(hook) for a, hook in zip(attentions, hooks, strict=True)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _hook(layer: int, visit: Visit | None, edit: Edit | None):
    def hook(module: nn.Module, arguments: tuple[Tensor, Tensor, Tensor, Route], output: Tensor) -> Tensor | None:
        route = arguments[3]
        with torch.autocast(output.device.type, enabled=False):
            heads = pulled(*arguments)
            if visit is not None:
                visit(layer, heads, route.frame.pull(output) if route.values else output)
            if edit is None:
                return None
            changed = edit(layer, heads).to(output.dtype)
            return route.frame.push(changed) if route.values else changed

    return hook
