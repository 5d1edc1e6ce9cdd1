"""What definition and fast path share, pinned to published values."""

import math

import pytest
import torch
import torch.nn.functional as F
from specimens import HEAD_DIM, assert_close, build, draw_sample, phase_of, route_of
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from longroute.attention import attend, parse_encoding
from longroute.control.alibi import alibi_slopes
from longroute.transport import BlockRotation, Householder, LayerShape, PaTH
from longroute.transport.rotation import rotation_matrix

PUBLISHED_SLOPES = {
    1: [2**-8],
    6: [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3],
    8: [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256],
    12: [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256, 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5],
}
"""Press et al. 2022, §3 and the authors' rule for head counts that aren't powers of two."""


@pytest.mark.parametrize("heads", PUBLISHED_SLOPES)
def test_e1_alibi_slopes_are_the_published_ones(heads: int) -> None:
    torch.testing.assert_close(
        alibi_slopes(heads), torch.tensor(PUBLISHED_SLOPES[heads], dtype=torch.float64), rtol=1e-15, atol=0
    )


@pytest.mark.parametrize("heads", PUBLISHED_SLOPES)
def test_alibi_subtracts_slope_times_distance(heads: int) -> None:
    sample = draw_sample(9, heads=heads, kv_heads=1, dtype=torch.float64)
    route = route_of(build(parse_encoding("alibi"), heads=heads, kv_heads=1, dtype=torch.float64), sample)
    distance = torch.arange(9)[:, None] - torch.arange(9)
    bias = -torch.tensor(PUBLISHED_SLOPES[heads], dtype=torch.float64)[:, None, None] * distance
    mask = bias.masked_fill(distance < 0, -math.inf)
    keys, values = sample.key.expand_as(sample.query), sample.value.expand_as(sample.query)
    expected = F.scaled_dot_product_attention(sample.query, keys, values, mask)
    assert_close(attend(sample.query, sample.key, sample.value, route), expected, "ALiBi")


def test_rope_is_hugging_faces_llama() -> None:
    """Su et al. 2021, paired half-split. Our frame counts the first token's own step, so token t is at their t + 1."""
    time, theta = 33, 500.0
    sample = draw_sample(time, heads=2, kv_heads=2)
    config = LlamaConfig(
        hidden_size=2 * HEAD_DIM,
        num_attention_heads=2,
        rope_parameters={"rope_type": "default", "rope_theta": theta},
    )
    rotary = LlamaRotaryEmbedding(config)
    frame = route_of(build(parse_encoding(f"rope:theta={theta}"), heads=2), sample).frame

    def theirs(first: int) -> tuple[torch.Tensor, torch.Tensor]:
        cos, sin = rotary(sample.hidden, torch.arange(first, first + time)[None])
        return apply_rotary_pos_emb(sample.query, sample.key, cos, sin)

    query, key = frame.pull(sample.query), frame.pull(sample.key)
    shifted_query, shifted_key = theirs(1)
    assert_close(query, shifted_query, "queries")
    assert_close(key, shifted_key, "keys")
    their_query, their_key = theirs(0)
    assert_close(query @ key.mT, their_query @ their_key.mT, "scores")


def test_rope_frequencies() -> None:
    """θ_i = 10000^(-2(i-1)/d), i = 1 … d/2 (Su et al. 2021, §3.2.2), here for d = 8; the step turns by minus that."""
    phase = phase_of(route_of(build(parse_encoding("rope"), head_dim=8), draw_sample(1, head_dim=8)))
    assert_close(-phase[0, 0, 0].double(), torch.tensor([1, 0.1, 0.01, 0.001]).double(), "ω", torch.float32)


def test_a_share_of_ropes_planes_turns_and_the_slowest_stand_still() -> None:
    """p-RoPE keeps the highest frequencies, a share p of them, as they are (Barbero et al. 2024, §6)."""
    phase = phase_of(route_of(build(parse_encoding("rope:share=0.5"), head_dim=8), draw_sample(1, head_dim=8)))
    assert_close(-phase[0, 0, 0].double(), torch.tensor([1, 0.1, 0, 0]).double(), "ω", torch.float32)


def test_forget_gate_bias_is_the_sum_of_log_gates() -> None:
    """D_ij = Σ_{l=j+1}^{i} ln f_l, f_t = σ(w·x_t + b) (Lin et al. 2025, eq. 4 to 6)."""
    sample = draw_sample(9, heads=2, kv_heads=2, dtype=torch.float64)
    position = build(parse_encoding("forget"), heads=2, dtype=torch.float64)
    weight, bias = position.get_parameter("control.weight"), position.get_parameter("control.bias")
    gate = torch.sigmoid(torch.einsum("btw,hw->bht", sample.hidden, weight) + bias[:, None])
    mask = torch.full((2, 2, 9, 9), -math.inf, dtype=torch.float64)
    for i in range(9):
        for j in range(i + 1):
            mask[:, :, i, j] = gate[:, :, j + 1 : i + 1].log().sum(-1)
    expected = F.scaled_dot_product_attention(sample.query, sample.key, sample.value, mask)
    assert_close(attend(sample.query, sample.key, sample.value, route_of(position, sample)), expected, "FoX")


def bias_table(name: str, time: int) -> torch.Tensor:
    """b_ij of every head, (head i j), of a pairwise control at its start."""
    position = parse_encoding(name).build(LayerShape(6, 2, 2, 4, 11))
    pairwise = route_of(position, draw_sample(time, heads=2, kv_heads=2)).pairwise
    assert pairwise is not None
    place = torch.arange(time)
    return pairwise(torch.arange(2)[:, None, None], place[:, None], place).detach().double().expand(2, time, time)


def test_kerple_log_is_minus_r1_log_one_plus_r2_distance() -> None:
    """-r₁ log(1 + r₂ |i - j|) (Chi et al. 2022, eq. 4), r₁ = κ = 1.5 and r₂ = 1/w = 1/4 and 1/64 at the start."""
    found = bias_table("log-distance:power=1.5", 9)
    for head, width in enumerate((4.0, 64.0)):
        for i in range(9):
            for j in range(i + 1):
                assert math.isclose(found[head, i, j].item(), -1.5 * math.log(1 + (i - j) / width), abs_tol=1e-6)


def test_window_sees_the_last_tokens_and_the_sinks() -> None:
    """A window of three with one sink (Xiao et al. 2024, figure 1d): row 5 sees 0, 3, 4 and 5."""
    found = bias_table("window:window=3,sinks=1", 6)[0]
    assert [j for j in range(6) if found[5, j] == 0] == [0, 3, 4, 5]
    assert found[5, 1] == found[5, 2] == -math.inf


def test_log_count_lowers_far_scores_by_the_log_of_the_count() -> None:
    """Row i has i + 1 tokens: of near=2, its keys further off than 2 lose ln((i + 1) / 2)."""
    found = bias_table("log-count:near=2", 8)[0]
    assert [round(found[7, j].item(), 6) for j in range(8)] == [*[round(-math.log(4), 6)] * 5, 0, 0, 0]
    assert found[1].abs().max() == 0


def test_householder_reflects_and_path_shrinks() -> None:
    """H = I - β w wᵀ (Yang et al. 2025, eq. 1): with w = (3, 4)/5, β = 2 mirrors w and β = 1 removes it."""
    vectors = torch.tensor([3.0, 4.0], dtype=torch.float64)
    householder = Householder().build(LayerShape(6, 1, 1, 2, 11)).matrix(vectors.view(1, 1, 1, 1, 2))[0, 0, 0]
    assert_close(householder, torch.tensor([[7.0, -24.0], [-24.0, -7.0]]).double() / 25, "β = 2")
    path = PaTH().build(LayerShape(6, 1, 1, 2, 11)).matrix((vectors / 5).view(1, 1, 1, 2))[0, 0, 0]
    assert_close(path, torch.tensor([[16.0, -12.0], [-12.0, 9.0]]).double() / 25, "β = 1")


def test_cayley_and_exponential_turn_a_plane() -> None:
    """θ = 0.8: e^S turns by θ, Cayley's map by 2 arctan(θ / 2)."""
    entries = torch.full((1, 1, 1, 1, 1), 0.8, dtype=torch.float64)
    for name, angle in (("exponential", 0.8), ("cayley", 2 * math.atan(0.4))):
        steps = BlockRotation(size=2, map=name).build(LayerShape(6, 1, 1, 2, 11))  # type: ignore[arg-type]  # a Literal
        assert_close(steps.matrix(entries)[0, 0, 0], rotation_matrix(torch.tensor([angle], dtype=torch.float64)), name)
