"""Tiny random models of other libraries' architectures: what is shown is what is computed, and nothing is disturbed."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, models
from torch import Tensor

from longroute.data.windows import IGNORED
from longroute.diagnose.causal_lm import CausalLM
from longroute.diagnose.edit import attention
from longroute.diagnose.heads import Heads
from longroute.errors import InputError

transformers = pytest.importorskip("transformers")

TIME, NEAR, VOCABULARY = 41, 8, 97
LLAMA: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
}
NEOX = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}
GPT2: dict[str, Any] = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
BLOOM: dict[str, Any] = {"vocab_size": VOCABULARY, "hidden_size": 48, "n_layer": 2, "n_head": 6, "seq_length": 64}
MPT: dict[str, Any] = {"vocab_size": VOCABULARY, "d_model": 48, "n_layers": 2, "n_heads": 6, "max_seq_len": 64}
CLIPPED = {"clip_qkv": 0.5, "softmax_scale": 0.4}
CAPPED = {**LLAMA, "head_dim": 8}
CHUNKED = {**CAPPED, "num_local_experts": 2, "attention_chunk_size": 16, "intermediate_size_mlp": 48}
HYBRID = {**LLAMA, "num_experts": 2, "attn_layer_offset": 1, "attn_layer_period": 2, "use_mamba_kernels": False}
DYNAMIC = {
    **LLAMA,
    "max_position_embeddings": 4096,
    "rope_parameters": {"rope_type": "dynamic", "rope_theta": 10_000.0, "factor": 2.0},
}

CONFIGURATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", LLAMA),
    "neox": ("GPTNeoXConfig", NEOX),
    "gpt2": ("GPT2Config", GPT2),
    "gptj": ("GPTJConfig", {**GPT2, "rotary_dim": 4}),
    "granite": ("GraniteConfig", {**LLAMA, "logits_scaling": 3.0, "attention_multiplier": 0.3}),
    "mistral": ("MistralConfig", {**LLAMA, "sliding_window": 12}),
    "bloom": ("BloomConfig", BLOOM),
    "mpt": ("MptConfig", {**MPT, "attn_config": CLIPPED}),
    "gemma2": ("Gemma2Config", CAPPED),
    "gpt-oss": ("GptOssConfig", {**CAPPED, "num_local_experts": 2, "num_experts_per_tok": 1}),
    "llama4": ("Llama4TextConfig", CHUNKED),
    "falcon": ("FalconConfig", NEOX),
    "jamba": ("JambaConfig", HYBRID),
    "bert": ("BertConfig", NEOX),
    "smollm3": ("SmolLM3Config", {**LLAMA, "no_rope_layers": [1, 0]}),
    "dynamic": ("LlamaConfig", DYNAMIC),
}
TRACED = ["llama", "neox", "gpt2", "gptj", "granite", "mistral", "bloom", "mpt"]
UNTRACED = {"gemma2": "softcap", "gpt-oss": "sinks", "falcon": "interface", "jamba": "2 layers with 1 attention"}

pytestmark = pytest.mark.usefixtures("one_thread")


def random_model(kind: str, **changes: Any) -> Any:
    """A model whose weights are large enough that every part of its attention matters."""
    name, options = CONFIGURATIONS[kind]
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, name)(**{**options, **changes}))
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.2) if weight.ndim > 1 else weight.add_(0.1 * torch.randn_like(weight))
    return model.eval()


@functools.cache
def tiny(kind: str) -> CausalLM:
    return wrapped(random_model(kind))


def wrapped(model: Any, **options: Any) -> CausalLM:
    words = Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    return CausalLM(model, transformers.PreTrainedTokenizerFast(tokenizer_object=words), name="tiny", **options)


def windows(time: int = TIME) -> tuple[Tensor, Tensor]:
    tokens = torch.randint(VOCABULARY, (2, time + 1), generator=torch.Generator().manual_seed(1))
    return tokens[:, :-1], tokens[:, 1:]


def own_losses(model: Any, inputs: Tensor, targets: Tensor, **options: Any) -> Tensor:
    with torch.no_grad():
        logits = model(input_ids=inputs, use_cache=False, **options).logits
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), reduction="none").view_as(targets)


def unchanged(layer: int, heads: Heads) -> Tensor:
    return attention(heads, lambda rows: rows.scores)


def near_only(layer: int, heads: Heads) -> Tensor:
    return attention(heads, lambda rows: rows.scores.masked_fill(rows.distance > NEAR, float("-inf")))


def seen(model: CausalLM, inputs: Tensor, targets: Tensor) -> list[tuple[int, Heads, Tensor]]:
    """What a visit is given."""
    calls: list[tuple[int, Heads, Tensor]] = []
    model.losses(inputs, targets, visit=lambda layer, heads, output: calls.append((layer, heads, output)))
    return calls


@pytest.mark.parametrize("kind", TRACED)
def test_heads_give_every_layer_s_own_output(kind):
    calls = seen(tiny(kind), *windows())
    assert [layer for layer, _, _ in calls] == [0, 1]
    for layer, heads, output in calls:
        torch.testing.assert_close(unchanged(layer, heads), output, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", TRACED)
def test_hidden_states_are_bit_equal_with_and_without_a_visit(kind):
    model, (inputs, targets) = tiny(kind), windows()
    caught: list[Tensor] = []
    handle = model.model.base_model.register_forward_hook(lambda *call: caught.append(call[2].last_hidden_state))
    with torch.no_grad():
        random_model(kind)(inputs)
        model.model(inputs)
    seen(model, inputs, targets)
    handle.remove()
    with torch.no_grad():
        fresh = random_model(kind).base_model(inputs).last_hidden_state
    assert [torch.equal(hidden, fresh) for hidden in caught] == [True, True]


@pytest.mark.parametrize("kind", [*TRACED, *UNTRACED])
def test_losses_are_those_of_the_model_s_own_logits(kind):
    model, (inputs, targets) = tiny(kind), windows()
    torch.testing.assert_close(model.losses(inputs, targets), own_losses(model.model, inputs, targets))


def test_ignored_targets_have_no_loss():
    for kind in ("llama", "granite"):
        inputs, targets = windows()
        targets = targets.clone()
        targets[:, :5] = IGNORED
        losses = tiny(kind).losses(inputs, targets)
        assert (losses[:, :5] == 0).all()
        assert (losses[:, 5:] > 0).all()


@pytest.mark.parametrize("kind", TRACED)
def test_an_edit_that_changes_nothing_leaves_losses(kind):
    model, (inputs, targets) = tiny(kind), windows()
    edited = model.losses(inputs, targets, edit=unchanged)
    torch.testing.assert_close(edited, model.losses(inputs, targets), atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", TRACED)
def test_an_edit_s_window_is_the_model_s_own_attention_under_a_mask(kind, monkeypatch):
    model, (inputs, targets) = tiny(kind), windows()
    distance = torch.arange(TIME)[:, None] - torch.arange(TIME)
    mask = torch.zeros(TIME, TIME).masked_fill((distance < 0) | (distance > NEAR), torch.finfo(torch.float32).min)
    mask = mask.expand(2, 1, TIME, TIME)
    reference = random_model(kind)
    if kind == "bloom":  # takes no mask of its own
        monkeypatch.setattr("transformers.models.bloom.modeling_bloom.create_causal_mask", lambda **_: mask)
        expected = own_losses(reference, inputs, targets)
    else:
        if kind != "mpt":
            reference.set_attn_implementation("eager")
        expected = own_losses(reference, inputs, targets, attention_mask=mask)
    monkeypatch.undo()
    edited = model.losses(inputs, targets, edit=near_only)
    torch.testing.assert_close(edited, expected, atol=2e-5, rtol=0)
    assert (edited - model.losses(inputs, targets)).abs().max() > 0.01


def test_visit_and_edit_together_show_the_own_output_and_use_the_edit_s():
    model, (inputs, targets) = tiny("llama"), windows()
    outputs: list[Tensor] = []
    both = model.losses(inputs, targets, edit=near_only, visit=lambda layer, heads, output: outputs.append(output))
    torch.testing.assert_close(both, model.losses(inputs, targets, edit=near_only))
    torch.testing.assert_close(outputs[0], seen(model, inputs, targets)[0][2])


def test_sliding_windows_are_shown_where_they_bind():
    assert [heads.window for _, heads, _ in seen(tiny("mistral"), *windows())] == [12, 12]
    assert [heads.window for _, heads, _ in seen(tiny("mistral"), *windows(13))] == [12, 12]
    assert [heads.window for _, heads, _ in seen(tiny("mistral"), *windows(12))] == [None, None]


@pytest.mark.parametrize("kind", ["bloom", "mpt"])
def test_slopes_of_six_heads_are_the_published_ones(kind):
    (_, heads, _), _ = seen(tiny(kind), *windows(5))
    assert heads.slope is not None
    torch.testing.assert_close(heads.slope, torch.tensor([2.0**-n for n in (2, 4, 6, 8, 1, 3)], dtype=torch.float64))


@pytest.mark.parametrize("kind", ["llama", "bloom"])
def test_a_visit_may_run_the_same_model_and_others(kind):
    model, other, (inputs, targets) = tiny(kind), tiny("gpt2"), windows()
    expected, inner = model.losses(inputs, targets), []

    def visit(layer: int, heads: Heads, output: Tensor) -> None:
        inner.append(len(seen(other, inputs, targets)))
        inner.append(len(seen(model, inputs, targets)))
        assert torch.equal(model.losses(inputs, targets), expected)

    assert torch.equal(model.losses(inputs, targets, visit=visit), expected)
    assert inner == [2, 2, 2, 2]


@pytest.mark.parametrize("kind", ["llama", "bloom", "mpt"])
def test_a_failing_visit_leaves_no_trace(kind):
    model, (inputs, targets) = tiny(kind), windows(80 if kind != "llama" else TIME)
    expected, before = model.losses(inputs, targets), model.model.config.to_dict()

    def failing(layer: int, heads: Heads, output: Tensor) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        model.losses(inputs, targets, visit=failing)
    assert model.model.config.to_dict() == before
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.model.modules())
    assert torch.equal(model.losses(inputs, targets), expected)


def test_mpt_reads_more_tokens_than_its_configuration_says():
    inputs, targets = windows(100)
    longer = random_model("mpt", max_seq_len=128)
    torch.testing.assert_close(tiny("mpt").losses(inputs, targets), own_losses(longer, inputs, targets))
    assert tiny("mpt").anatomy.longest is None
    assert tiny("mpt").model.config.max_seq_len == 64


@pytest.mark.parametrize("kind", ["llama", "neox", "mistral"])
def test_a_step_takes_one_token_s_key_to_where_the_next_would_have_it(kind):
    model, inputs = tiny(kind), torch.full((2, 17), 5)
    step = model.steps(inputs)[0]
    assert step is not None
    assert step.shape == (2, model.anatomy.kv_heads, 17, 8, 8)
    _, heads, _ = seen(model, inputs, inputs)[0]  # the same token everywhere, so without positions the same key
    torch.testing.assert_close(
        step[:, :, 1:] @ heads.key[:, :, 1:, :, None].double(),
        heads.key[:, :, :-1, :, None].double(),
        atol=1e-5,
        rtol=0,
    )


@pytest.mark.parametrize("kind", ["gpt2", "gptj", "bloom", "mpt", "llama4", "dynamic", "gemma2"])
def test_no_step_where_nothing_moves_or_the_rotation_is_not_known(kind):
    assert tiny(kind).steps(windows()[0]) == [None, None]


def test_layers_without_a_rotation_have_no_step():
    assert [step is None for step in tiny("smollm3").steps(windows()[0])] == [False, True]


def test_anatomy_is_that_of_the_heads():
    anatomy = tiny("llama").anatomy
    assert (anatomy.name, anatomy.kind, anatomy.train_length, anatomy.longest) == ("tiny", "llama", 64, None)
    assert (anatomy.layers, anatomy.heads, anatomy.kv_heads, anatomy.head_dim) == (2, 4, 2, 8)
    assert anatomy.untraced is None
    anatomy = tiny("bloom").anatomy
    assert (anatomy.layers, anatomy.heads, anatomy.kv_heads, anatomy.head_dim) == (2, 6, 6, 8)
    assert wrapped(random_model("llama"), train_length=32).anatomy.train_length == 32


@pytest.mark.parametrize("kind", ["gpt2", "gptj"])
def test_a_table_of_positions_ends_somewhere(kind):
    assert tiny(kind).anatomy.longest == 64
    assert tiny(kind).losses(*windows(64)).shape == (2, 64)
    with pytest.raises(InputError, match="64 tokens, not for 65"):
        tiny(kind).losses(*windows(65))


@pytest.mark.parametrize(("kind", "reason"), UNTRACED.items())
def test_what_heads_can_not_say_is_untraced_with_a_reason(kind, reason):
    model, (inputs, targets) = tiny(kind), windows()
    assert model.anatomy.untraced is not None
    assert reason in model.anatomy.untraced
    assert (model.anatomy.heads, model.anatomy.head_dim) == (4, 8)
    changes: list[dict[str, Callable[..., Any]]] = [{"visit": lambda *call: None}, {"edit": unchanged}]
    for change in changes:
        with pytest.raises(InputError, match=reason):
            model.losses(inputs, targets, **change)


def test_layers_that_share_one_attention_are_untraced():
    model = random_model("llama")
    model.model.layers[1].self_attn = model.model.layers[0].self_attn
    assert wrapped(model).anatomy.untraced == "llama goes through one attention module twice, which isn't supported"


def test_a_mask_that_is_neither_causal_nor_sliding_is_refused_when_it_first_binds():
    model = tiny("llama4")
    assert len(seen(model, *windows(16))) == 2
    with pytest.raises(InputError, match="masks beyond causal and sliding"):
        seen(model, *windows(17))


def test_a_model_that_sees_later_tokens_is_refused():
    with pytest.raises(InputError, match="isn't a causal language model"):
        tiny("bert")


def test_a_model_with_infinite_logits_is_refused():
    model = random_model("llama")
    model.lm_head.weight.data[3] = torch.inf
    with pytest.raises(InputError, match="finite"):
        wrapped(model)


def test_a_model_that_does_not_say_its_training_length_needs_one():
    model = random_model("bloom")
    del model.config.seq_length
    with pytest.raises(InputError, match="--train-length"):
        wrapped(model)
    assert wrapped(model, train_length=48).anatomy.train_length == 48


@pytest.mark.parametrize("kind", ["llama", "bloom"])
def test_half_precision_is_traced_and_edits_are_cast(kind):
    model, (inputs, targets) = wrapped(random_model(kind).bfloat16()), windows()
    assert model.anatomy.untraced is None
    losses = model.losses(inputs, targets)
    edited = model.losses(inputs, targets, edit=unchanged)
    assert losses.dtype == edited.dtype == torch.float32
    torch.testing.assert_close(edited, losses, atol=0.2, rtol=0)
