"""What is measured, each against something that everybody knows, with the goal that it must meet."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from longroute.attention import Pruning, Route, attend, parse_encoding
from longroute.attention.encoding import step_inputs
from longroute.bench.decoding import decoding_rows
from longroute.bench.precision import largest_error
from longroute.bench.reflections import reflection_rows
from longroute.bench.row import Job, Limited, Timed
from longroute.control import Charge
from longroute.control.alibi import alibi_slopes
from longroute.evaluate.run import model_scorer
from longroute.model import Decoder, ModelSpec, token_losses
from longroute.model.decoder import Attention
from longroute.train import TrainSpec
from longroute.transport import LayerShape

HEADS, HEAD_DIM = 8, 64
WIDTH = HEADS * HEAD_DIM
LONG = 65_536


def bench_rows(device: torch.device) -> list[Timed | Limited]:
    """All rows, for one device."""
    heads = f"{HEADS} × {HEAD_DIM}"
    rows: list[Timed | Limited] = []
    for length, goal in ((512, 1.35), (2048, 1.2), (4096, 1.2)):
        ours, rope = _layer("learned-qkv", length, device), _layer("rope-qk", length, device)
        rows.append(Timed("learned qkv layer", "rope layer", f"L={length}, {heads}", goal, ours, rope))
    for length in (1024, 4096):
        ours, rope = _layer("learned-qkv", length, device, given=True), _layer("rope-qk", length, device)
        shape = f"L={length}, {heads}, angles given"
        rows.append(Timed("learned qkv layer, no angle projection", "rope layer", shape, 1.15, ours, rope))
    for name in ("alibi", "forget"):
        charge, shape = _charge(name, 4096, device), f"L=4096, {heads}"
        plain, dense = _fused(4096, device), _dense(4096, device)
        rows.append(Timed(f"{name} attention", "plain causal SDPA", shape, 1.2, _charged(charge, 4096, device), plain))
        rows.append(Timed(f"{name} attention", "dense bias", shape, 1 / 1.4, _charged(charge, 4096, device), dense))
    for name in ("alibi", "forget"):
        measure = _error_share(name, device)
        rows.append(Limited(f"{name} error", "1e-5 from float64", f"L={LONG}, every row, float32", measure))
    ours, plain = _forward(_log_distance(4096, device), 4096, device), _forward(Route, 4096, device)
    rows.append(Timed("log-distance attention", "plain causal SDPA", f"L=4096, {heads}, forward", 1.35, ours, plain))
    rows += reflection_rows(HEADS, HEAD_DIM, device) + _pruned_rows(device) + decoding_rows(device)
    ours, theirs = _train_step(device), _llama_step(device)
    rows.append(Timed("mini rope training step", "transformers Llama", "8 × 64 tokens, float32", 1.0, ours, theirs))
    rows.append(Limited("evaluation", "2 GiB", f"one window of {LONG}, mini", _long_evaluation(device), limit_mib=2048))
    return rows


def _pruned_rows(device: torch.device) -> list[Timed | Limited]:
    """Certified pruning at LONG tokens."""
    rows: list[Timed | Limited] = []
    for name in ("alibi", "forget"):
        charge, shape = _charge(name, LONG, device), f"L={LONG}, {HEADS} × {HEAD_DIM}, forward, ε = 1e-6"
        pruned, whole = (_forward(_along(charge), LONG, device, pruning) for pruning in (Pruning(1e-6), None))
        rows.append(Timed(f"pruned {name} attention", "unpruned", shape, 1 / 5, pruned, whole, pairs=2))
    return rows


def _forward(
    route: Callable[[], Route], length: int, device: torch.device, pruning: Pruning | None = None
) -> Callable[[], Job]:
    def build() -> Job:
        query, key, value = _query_key_value(length, device)

        def job() -> None:
            with torch.inference_mode():
                attend(query, key, value, route(), pruning=pruning)

        return job

    return build


def _layer(encoding: str, length: int, device: torch.device, *, given: bool = False) -> Callable[[], Job]:
    """Forward and backward of a whole attention layer; `given`: its steps are computed beforehand, with gradients."""

    def build() -> Job:
        spec = ModelSpec(width=WIDTH, heads=HEADS, kv_heads=HEADS, head_dim=HEAD_DIM)
        layer = Attention(spec, parse_encoding(encoding), 0, 0).to(device)
        x = torch.randn(1, length, WIDTH, requires_grad=True, device=device)
        grad = torch.randn(1, length, WIDTH, device=device)
        ids = torch.randint(spec.vocabulary, (1, length), device=device)
        if given:
            steps = layer.position.steps(step_inputs(x, ids, None)).detach().requires_grad_()
            layer.position.steps.forward = lambda inputs: steps
        return lambda: layer(x, ids, None).backward(grad)

    return build


def _query_key_value(length: int, device: torch.device) -> tuple[Tensor, ...]:
    return tuple(torch.randn(1, HEADS, length, HEAD_DIM, device=device, requires_grad=True) for _ in range(3))


def _charge(name: str, length: int, device: torch.device) -> Callable[[], Charge]:
    if name == "alibi":
        decay = torch.full((1, 1, length), -1.0, dtype=torch.float64, device=device)
        return lambda: Charge(decay, alibi_slopes(HEADS).to(device), None)
    decay = (-0.02 * torch.rand(1, HEADS, length, device=device)).requires_grad_()
    return lambda: Charge(decay, torch.ones(HEADS, dtype=torch.float64, device=device), None)


def _along(charge: Callable[[], Charge]) -> Callable[[], Route]:
    return lambda: Route(charge=charge())


def _log_distance(length: int, device: torch.device) -> Callable[[], Route]:
    shape = LayerShape(WIDTH, HEADS, HEADS, HEAD_DIM, vocabulary=1, layer=0)
    position = parse_encoding("log-distance").build(shape).to(device)
    hidden, ids = torch.zeros(1, length, WIDTH, device=device), torch.zeros(1, length, dtype=torch.int64, device=device)
    return lambda: position(hidden, ids)


def _charged(charge: Callable[[], Charge], length: int, device: torch.device) -> Callable[[], Job]:
    def build() -> Job:
        query, key, value = _query_key_value(length, device)
        grad = torch.randn_like(query)
        return lambda: attend(query, key, value, Route(charge=charge())).backward(grad)

    return build


def _fused(length: int, device: torch.device) -> Callable[[], Job]:
    def build() -> Job:
        query, key, value = _query_key_value(length, device)
        grad = torch.randn_like(query)
        return lambda: F.scaled_dot_product_attention(query, key, value, is_causal=True).backward(grad)

    return build


def _dense(length: int, device: torch.device) -> Callable[[], Job]:
    """ALiBi as most code has it: a bias for every pair, made once and kept."""

    def build() -> Job:
        query, key, value = _query_key_value(length, device)
        grad = torch.randn_like(query)
        distance = torch.arange(length, device=device)[:, None] - torch.arange(length, device=device)
        bias = -alibi_slopes(HEADS).float().to(device)[:, None, None] * distance
        bias = bias.masked_fill(distance < 0, -math.inf)[None]
        return lambda: F.scaled_dot_product_attention(query, key, value, attn_mask=bias).backward(grad)

    return build


def _error_share(name: str, device: torch.device) -> Callable[[], float]:
    """Largest error of any output of one head at LONG tokens, as a share of 1e-5."""

    def measure() -> float:
        generator = torch.Generator().manual_seed(0)
        query, key, value = (torch.randn(LONG, HEAD_DIM, generator=generator) for _ in range(3))
        decay = -torch.ones(LONG) if name == "alibi" else -0.02 * torch.rand(LONG, generator=generator)
        slope = torch.tensor([0.5 if name == "alibi" else 1.0], dtype=torch.float64)
        return largest_error(query, key, value, decay, slope, device) / 1e-5

    return measure


def _training(loss: Callable[[], Tensor], parameters: list[Tensor]) -> Job:
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, fused=True)

    def step() -> None:
        loss().backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def _ids(device: torch.device) -> Tensor:
    return torch.randint(ModelSpec().vocabulary, (TrainSpec().batch, TrainSpec().length + 1), device=device)


def _train_step(device: torch.device) -> Callable[[], Job]:
    def build() -> Job:
        model, ids = Decoder(ModelSpec(), parse_encoding("rope-qk")).to(device), _ids(device)

        def loss() -> Tensor:
            return token_losses(model.hidden_states(ids[:, :-1]), model.embedding.weight, ids[:, 1:]).mean()

        return _training(loss, list(model.parameters()))

    return build


def _llama_step(device: torch.device) -> Callable[[], Job]:
    def build() -> Job:
        from transformers import AutoModelForCausalLM, LlamaConfig  # an extra, needed for this row alone

        spec = ModelSpec()
        config = LlamaConfig(
            vocab_size=spec.vocabulary,
            hidden_size=spec.width,
            intermediate_size=spec.hidden,
            num_hidden_layers=spec.layers,
            num_attention_heads=spec.heads,
            num_key_value_heads=spec.kv_heads,
            head_dim=spec.head_dim,
            tie_word_embeddings=True,
            use_cache=False,
        )
        model, ids = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").to(device), _ids(device)

        def loss() -> Tensor:
            logits = model(input_ids=ids[:, :-1]).logits
            return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())

        return _training(loss, list(model.parameters()))

    return build


def _long_evaluation(device: torch.device) -> Callable[[], float]:
    def measure() -> float:
        model = Decoder(ModelSpec(), parse_encoding("learned-qkv+forget")).to(device).eval()
        ids = torch.randint(ModelSpec().vocabulary, (1, LONG + 1))
        model_scorer(model, TrainSpec(), device)(ids[:, :-1], ids[:, 1:])
        return 0.0

    return measure
