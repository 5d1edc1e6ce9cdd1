"""The decoder's shape, seeds and loss."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from specimens import ENCODINGS, VOCABULARY, assert_close, assert_same_bits, draw_sample, named, small_model

from longroute.attention import Encoding, parse_encoding
from longroute.data.windows import IGNORED
from longroute.errors import InputError
from longroute.model import Decoder, ModelSpec, token_losses
from longroute.transport.random import RandomSteps

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("kv_heads", [1, 2])
@pytest.mark.parametrize(
    ("name", "of_position"),
    [
        ("rope", lambda spec: 0),
        ("random-qkv", lambda spec: 0),
        ("alibi", lambda spec: 0),
        ("learned", lambda spec: spec.kv_heads * (spec.head_dim // 2) * (spec.width + 1)),
        ("forget", lambda spec: spec.kv_heads * (spec.width + 1)),
    ],
)
def test_parameters_are_counted(name: str, of_position: Callable[[ModelSpec], int], kv_heads: int) -> None:
    spec = small_model(kv_heads)
    attention = spec.width * (spec.heads + 2 * kv_heads) * spec.head_dim + spec.heads * spec.head_dim * spec.width
    block = attention + of_position(spec) + 3 * spec.width * spec.hidden + 2 * spec.width
    expected = spec.vocabulary * spec.width + spec.layers * block + spec.width
    model = Decoder(spec, parse_encoding(name))
    assert sum(p.numel() for p in model.parameters()) == expected


def test_the_embedding_is_the_output() -> None:
    model = Decoder(small_model(), parse_encoding("rope"))
    token_ids = draw_sample(5).token_ids
    expected = model.hidden_states(token_ids) @ model.embedding.weight.T
    assert_close(model(token_ids), expected, "logits")
    assert not [name for name, p in model.named_parameters() if "embedding" not in name and VOCABULARY in p.shape]


@pytest.mark.parametrize("name", ["none", "rope-qkv", "alibi", "learned-qkv+forget"])
def test_grouped_query_heads_share_key_value_heads(name: str) -> None:
    """A model with one key-value head is the one with as many as queries, their weights repeated."""
    grouped = Decoder(small_model(1), parse_encoding(name), seed=1)
    whole = Decoder(small_model(2), parse_encoding(name), seed=1)
    repeated = grouped.state_dict()
    for key, source in repeated.items():
        if key.endswith("attention.project.weight"):
            query, own_key, own_value = source.split([8, 4, 4])
            repeated[key] = torch.cat([query, own_key, own_key, own_value, own_value])
        elif ".position." in key:
            repeated[key] = torch.cat([source, source])
    whole.load_state_dict(repeated)
    token_ids = draw_sample(9).token_ids
    assert_close(whole(token_ids), grouped(token_ids), "logits")


@pytest.mark.parametrize("encoding", named(ENCODINGS))
def test_a_seed_is_a_model(encoding: Encoding) -> None:
    token_ids = draw_sample(9).token_ids
    torch.manual_seed(123)
    before = torch.random.get_rng_state()
    first = Decoder(small_model(), encoding, seed=4)(token_ids)
    assert torch.equal(torch.random.get_rng_state(), before), "the global generator moved"
    torch.manual_seed(321)
    assert_same_bits(Decoder(small_model(), encoding, seed=4)(token_ids), first, "the same seed")
    assert (Decoder(small_model(), encoding, seed=5)(token_ids) != first).any()


def test_layers_and_seeds_have_random_angles_of_their_own() -> None:
    tables = [
        module.table.rows
        for seed in (0, 1)
        for module in Decoder(small_model(), parse_encoding("random"), seed=seed).modules()
        if isinstance(module, RandomSteps)
    ]
    assert len(tables) == 4
    for i, table in enumerate(tables):
        for other in tables[:i]:
            assert torch.ne(table, other).float().mean() > 0.9


@pytest.mark.parametrize("chunk", [1, 3, 14, 4096])
def test_losses_in_chunks_are_the_losses(chunk: int) -> None:
    generator = torch.Generator().manual_seed(0)
    hidden, weight = (
        torch.randn(2, 7, 5, generator=generator),
        torch.randn(VOCABULARY, 5, generator=generator),
    )
    targets = torch.randint(VOCABULARY, (2, 7), generator=generator)
    targets[0, 3] = targets[1, 6] = IGNORED
    losses = token_losses(hidden, weight, targets, chunk=chunk)
    scored = targets != IGNORED
    probabilities = (hidden.double() @ weight.double().T).softmax(-1)
    expected = -probabilities.gather(-1, targets.clamp(min=0)[..., None])[..., 0].log() * scored
    assert losses.dtype == torch.float32
    assert_close(losses, expected, "losses")
    assert losses[~scored].tolist() == [0.0, 0.0]


def test_losses_of_bfloat16_states_are_float32() -> None:
    hidden, weight = torch.ones(1, 2, 4, dtype=torch.bfloat16), torch.ones(3, 4, dtype=torch.bfloat16)
    losses = token_losses(hidden, weight, torch.tensor([[0, 2]]))
    assert losses.dtype == torch.float32
    assert_close(losses, torch.full((1, 2), math.log(3)), "losses")


@pytest.mark.parametrize("encoding", named(ENCODINGS))
def test_g2_a_uniform_model_loses_the_logarithm_of_its_vocabulary(encoding: Encoding) -> None:
    """For each token, the first one too."""
    model = Decoder(small_model(), encoding)
    torch.nn.init.zeros_(model.embedding.weight)
    token_ids = draw_sample(9).token_ids
    losses = token_losses(model.hidden_states(token_ids), model.embedding.weight, token_ids)
    uniform = F.cross_entropy(torch.zeros(1, VOCABULARY), torch.tensor([0]))
    assert_same_bits(losses, uniform.expand(2, 9), "losses")
    assert abs(uniform.item() - math.log(VOCABULARY)) < 1e-6


@pytest.mark.parametrize("field", ["layers", "width", "heads", "kv_heads", "head_dim", "hidden", "vocabulary"])
def test_sizes_below_one_are_refused(field: str) -> None:
    with pytest.raises(InputError, match=f"model: {field} must be at least 1, not 0"):
        ModelSpec(**{field: 0})


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(InputError, match=r"heads \(4\) must be a multiple of kv_heads \(3\)"):
        ModelSpec(heads=4, kv_heads=3)
