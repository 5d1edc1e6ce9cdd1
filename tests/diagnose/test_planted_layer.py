"""A synthetic attention layer with planted scores, values and steps: what is measured is what was planted."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats

from longroute.diagnose.head_measures import bin_edges, measure_heads
from longroute.diagnose.heads import Heads
from longroute.diagnose.transports import transport_decay
from longroute.theory import typical_far_mass
from longroute.transport.rotation import rotation_matrix

NEAR, TIME, WINDOWS = 64, 1024, 24


def planted_heads(spread: float, gap: float, seed: int = 0) -> Heads:
    """Far scores normal with this spread and mean 0; a query scores `gap` more on its own token; values noise."""
    generator = torch.Generator().manual_seed(seed)
    dim = 64
    direction = torch.randn(WINDOWS, 1, TIME, dim, generator=generator, dtype=torch.float64)
    query = torch.nn.functional.normalize(
        torch.randn(WINDOWS, 1, TIME, dim, generator=generator, dtype=torch.float64), dim=-1
    )
    key = direction * spread + query * gap  # q_i·k_i is gap + noise, every other N(0, spread² + gap² / dim)
    value = torch.randn(WINDOWS, 1, TIME, dim, generator=generator, dtype=torch.float64)
    return Heads(query, key, value, 1.0)


def interval(values: torch.Tensor) -> tuple[float, float]:
    """A 99.9 % t-interval of the mean over windows."""
    mean, error = values.mean().item(), values.std().item() / len(values) ** 0.5
    reach = stats.t.ppf(0.9995, len(values) - 1) * error
    return mean - reach, mean + reach


def covers(values: torch.Tensor, planted: float) -> bool:
    low, high = interval(values)
    return low <= planted <= high


@pytest.mark.parametrize("spread", [0.5, 1.0, 1.5])
def test_spread_and_free_energy_are_recovered(spread):
    gap = 6.0
    measured = measure_heads(planted_heads(spread, gap), near=NEAR)
    variance = spread**2 + gap**2 / 64
    assert covers(measured["far_variance"][:, 0], variance * (1 - 1 / 700)) or measured[
        "far_variance"
    ].mean() == pytest.approx(variance, rel=0.01)
    assert covers(measured["far_mean"][:, 0], 0.0)
    # the mean of a logarithm over F samples is below f = σ²/2 by about (e^{σ²} - 1) / 2F
    count = measured["far_count"].mean().item()
    assert covers(measured["far_free_energy"][:, 0], variance / 2 - math.expm1(variance) / 2 / count)


def test_gap_far_mass_and_the_typical_law_are_recovered():
    gap, spread = 8.0, 1.0
    measured = measure_heads(planted_heads(spread, gap), near=NEAR, rows=256)
    variance = spread**2 + gap**2 / 64
    count = measured["far_count"][0, 0].item()
    target = np.exp(gap + spread * np.random.default_rng(0).standard_normal(10_000))
    law = typical_far_mass(count, target + NEAR * math.exp(variance / 2), variance / 2).mean()
    assert measured["far_mass"].mean().item() == pytest.approx(law, rel=0.05)
    largest = math.sqrt(variance) * stats.norm.ppf(1 - 0.4394 / count)  # median of the largest of F normals, about
    assert measured["score_gap"].mean().item() == pytest.approx(gap - largest, abs=0.5)


@pytest.mark.parametrize("background", [0.0, 1.0])
def test_value_coherence_is_recovered(background):
    heads = planted_heads(0.01, 0.0)
    dim = heads.value.shape[-1]
    shared = torch.full((dim,), background / dim**0.5, dtype=torch.float64)
    noise = heads.value / dim**0.5
    planted = Heads(heads.query, heads.key, noise + shared, 1.0)
    measured = measure_heads(planted, near=NEAR)
    share = measured["far_mass"].mean().item()
    count = measured["far_count"].mean().item()
    far_norm = share**2 * (background**2 + 1 / count)
    assert measured["far_norm"].mean().item() == pytest.approx(far_norm, rel=0.1)
    assert measured["incoherent_norm"].mean().item() == pytest.approx(share**2 * (background**2 + 1) / count, rel=0.1)


def test_sinks_are_told_apart_from_far_mass():
    heads = planted_heads(0.1, 0.0)
    key = heads.key.clone()
    key[:, :, 0] = 0
    query = torch.cat([heads.query, torch.ones_like(heads.query[..., :1])], -1)
    extra = torch.zeros_like(key[..., :1])
    extra[:, :, 0] = 20.0
    measured = measure_heads(Heads(query, torch.cat([key, extra], -1), heads.value, 1.0), near=NEAR)
    assert measured["sink_mass"].min().item() > 0.99
    assert measured["far_mass"].max().item() < 0.01


def test_mass_by_distance_adds_up_and_lies_where_it_was_planted():
    heads = planted_heads(0.1, 0.0)
    charge = -torch.arange(TIME, dtype=torch.float64).view(1, 1, -1)
    steep = Heads(heads.query, heads.key, heads.value, 1.0, charge, torch.tensor([0.5], dtype=torch.float64))
    mass = measure_heads(steep, near=NEAR)["mass"].mean((0, 1))
    assert mass.sum().item() == pytest.approx(1.0, abs=1e-9)
    edges = [*bin_edges(TIME), TIME]
    planted = [math.exp(-a / 2) - math.exp(-b / 2) for a, b in itertools.pairwise(edges)]
    assert mass.tolist() == pytest.approx(planted, abs=0.02)


@pytest.mark.parametrize("spread", [0.1, 0.5])
def test_a_planted_spectral_gap_is_recovered_within_its_error(spread):
    generator = torch.Generator().manual_seed(1)
    angle = torch.randn(4, 2, 1024, 2, generator=generator, dtype=torch.float64) * spread
    decay = transport_decay(rotation_matrix(angle))
    planted = math.exp(-(spread**2) / 2)
    assert ((decay.rate - planted).abs() < 5 * decay.rate_error + 1e-3).all()
    assert (decay.rate_error < 0.1 * (1 - planted) + 5e-3).all()
    assert decay.norm.sub(1).abs().max() < 1e-9


def test_a_fixed_step_never_mixes_and_contraction_is_not_incoherence():
    angle = torch.tensor([0.3, 0.01], dtype=torch.float64).expand(1, 1, 512, 2)
    decay = transport_decay(rotation_matrix(angle))
    assert decay.rate.min().item() == pytest.approx(1.0, abs=1e-9)
    shrinking = transport_decay(0.99 * torch.eye(4, dtype=torch.float64).expand(1, 1, 512, 4, 4))
    assert shrinking.norm[0].tolist() == pytest.approx([0.99**n for n in shrinking.lags.tolist()])
    assert shrinking.cosine.min().item() == pytest.approx(1.0)
