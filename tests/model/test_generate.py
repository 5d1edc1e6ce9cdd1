"""Generation: greedy is the argmax of the full forward, draws follow their seed and their nucleus."""

import math

import pytest
import torch
from specimens import VOCABULARY, small_model
from torch import Tensor

from longroute.attention import parse_encoding
from longroute.errors import InputError
from longroute.model import Decoder, Decoding, GenerateSpec, generate
from longroute.model.generate import next_tokens

pytestmark = pytest.mark.usefixtures("one_thread")

ENCODINGS = ["none", "rope-qk", "householder-qkv", "path-qk", "path-qk+forget", "learned-qkv+forget", "log-distance"]
GREEDY = GenerateSpec(tokens=12, temperature=0)
PROMPTS = [[3, 1, 4, 1, 5, 9, 2], [6], [5, 3, 5], [8, 9, 7, 9, 3, 2, 3, 8, 4, 6]]


def untrained(name: str) -> Decoder:
    """A model in float64, where no two logits tie, with every parameter moved so that its text is no single token."""
    model = Decoder(small_model(), parse_encoding(name), seed=1)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape), alpha=0.5)
    return model.double().eval()


def rows(model: Decoder, prompts: list[list[int]], spec: GenerateSpec, **more: int) -> list[list[int]]:
    """What follows each prompt."""
    return torch.stack(list(generate(model, prompts, spec, **more)), 1).tolist()


def drawn(logits: Tensor, spec: GenerateSpec, count: int = 20_000) -> Tensor:
    """How often each token comes in `count` draws, as a share."""
    tokens = next_tokens(logits.expand(count, -1), spec, torch.Generator().manual_seed(spec.seed))
    return tokens.bincount(minlength=logits.shape[-1]) / count


@torch.no_grad()
def greedy_by_whole_forwards(model: Decoder, prompt: list[int], count: int) -> list[int]:
    """The definition: the likeliest token after all before it, `count` times."""
    token_ids = torch.tensor([prompt])
    for _ in range(count):
        token_ids = torch.cat([token_ids, model(token_ids)[:, -1:].argmax(-1)], 1)
    return token_ids[0, len(prompt) :].tolist()


@pytest.mark.parametrize("name", ENCODINGS)
def test_greedy_is_the_argmax_of_the_full_forward(name: str) -> None:
    model = untrained(name)
    expected = [greedy_by_whole_forwards(model, prompt, GREEDY.tokens) for prompt in PROMPTS]
    assert len({token for row in expected for token in row}) > 3, "texts that tell nothing"
    assert [rows(model, [prompt], GREEDY)[0] for prompt in PROMPTS] == expected


@pytest.mark.parametrize("name", ENCODINGS)
def test_ragged_prompts_go_on_as_each_alone(name: str) -> None:
    model = untrained(name)
    alone = [rows(model, [prompt], GREEDY)[0] for prompt in PROMPTS]
    assert len({tuple(row) for row in alone}) > 1
    assert rows(model, PROMPTS, GREEDY) == alone


@pytest.mark.parametrize("chunk", [1, 3, 5, 10])
@pytest.mark.parametrize("name", ENCODINGS)
def test_a_prompt_in_chunks_is_the_prompt_at_once(name: str, chunk: int) -> None:
    """Ragged too: a chunk may be all padding in some row."""
    model = untrained(name)
    spec = GenerateSpec(tokens=8, temperature=1, top_p=1)
    assert rows(model, PROMPTS, spec, chunk=chunk) == rows(model, PROMPTS, spec)


def test_every_token_goes_through_the_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths, extend = [], Decoding.extend

    def counted(self: Decoding, token_ids: Tensor) -> Tensor:
        lengths.append(token_ids.shape[1])
        return extend(self, token_ids)

    monkeypatch.setattr(Decoding, "extend", counted)
    model = untrained("rope-qk")
    assert len(rows(model, PROMPTS, GenerateSpec(tokens=4), chunk=4)[0]) == 4
    assert lengths == [4, 4, 2, 1, 1, 1]
    lengths.clear()
    rows(model, [[1] * 2500], GenerateSpec(tokens=1))
    assert lengths == [1024, 1024, 452]


def test_a_token_comes_before_the_next_is_computed() -> None:
    tokens = generate(untrained("rope-qk"), PROMPTS, GenerateSpec(tokens=10**9))
    first = next(tokens)
    assert (first.shape, first.dtype, first.requires_grad) == ((4,), torch.int64, False)
    assert next(tokens).shape == (4,)


def test_a_seed_is_a_text_and_leaves_the_global_generator_alone() -> None:
    model, before = untrained("rope-qk"), torch.random.get_rng_state()
    first = rows(model, PROMPTS, GenerateSpec(tokens=20, temperature=1, seed=4))
    assert rows(model, PROMPTS, GenerateSpec(tokens=20, temperature=1, seed=4)) == first
    assert rows(model, PROMPTS, GenerateSpec(tokens=20, temperature=1, seed=5)) != first
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("limit", [{"top_p": 1e-9, "temperature": 1.0}, {"temperature": 1e-320, "top_p": 1.0}])
def test_a_tiny_nucleus_and_a_tiny_temperature_are_greedy(limit: dict[str, float]) -> None:
    model = untrained("learned-qkv+forget")
    for seed in range(3):
        assert rows(model, PROMPTS, GenerateSpec(tokens=12, seed=seed, **limit)) == rows(model, PROMPTS, GREEDY)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_draws_have_the_probabilities_of_their_temperature(temperature: float) -> None:
    logits = torch.tensor([0.3, 2.0, -1.0, 1.1])
    expected = (logits / temperature).softmax(-1)
    assert (drawn(logits, GenerateSpec(temperature=temperature, top_p=1)) - expected).abs().max() < 0.02


@pytest.mark.parametrize(("top_p", "kept"), [(0.49, [2]), (0.51, [2, 0]), (0.79, [2, 0]), (0.81, [2, 0, 1])])
def test_the_nucleus_is_the_fewest_tokens_that_reach_top_p(top_p: float, kept: list[int]) -> None:
    probabilities = torch.tensor([0.3, 0.15, 0.5, 0.05])
    expected = torch.zeros(4)
    expected[kept] = probabilities[kept] / probabilities[kept].sum()
    found = drawn(probabilities.log(), GenerateSpec(temperature=1, top_p=top_p))
    assert (found - expected).abs().max() < 0.02
    assert found[expected == 0].sum() == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("tokens", value) for value in (0, -1)),
        *(("temperature", value) for value in (-0.1, math.nan, math.inf)),
        *(("top_p", value) for value in (0.0, -0.5, 1.01, math.nan)),
        *(("seed", value) for value in (-1, 2**63)),
    ],
)
def test_options_out_of_range_are_refused(field: str, value: float) -> None:
    with pytest.raises(InputError, match=f"generate: {field} must be .*, not {value}"):
        GenerateSpec(**{field: value})  # type: ignore[arg-type]  # of either kind


@pytest.mark.parametrize("prompts", [[], [[]], [[1], []], [[1, VOCABULARY]], [[-1]]])
def test_prompts_that_cannot_be_gone_on_from_are_refused_at_once(prompts: list[list[int]]) -> None:
    with pytest.raises(InputError, match=r"at least one token|vocabulary of 11"):
        generate(untrained("rope-qk"), prompts, GREEDY)


def test_a_chunk_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="chunk must be at least 1"):
        generate(untrained("rope-qk"), PROMPTS, GREEDY, chunk=0)
