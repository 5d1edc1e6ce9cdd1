"""Evidence for §1: walking a route step by step and going through the global frame give the same numbers."""

import numpy as np
from numpy.random import Generator

from longroute.theory import route, simulate
from longroute.theory.evidence.sources import OWN, PAPER
from longroute.theory.statement import Statement


def route_is_frame(rng: Generator) -> Statement:
    """q_iᵀ P(j→i) k_j, the product walked, beside q_iᵀ A_i A_j⁻¹ k_j."""
    time, dim = 257, 8
    steps = simulate.haar_orthogonal(rng, time, dim)
    query, key = rng.standard_normal((2, dim))
    frame = route.accumulated_frame(steps)
    distances = [1, 2, 4, 8, 16, 32, 64, 128, 256]
    walked = [query @ route.route_transport(steps, time - 1 - n, time - 1) @ key for n in distances]
    framed = [query @ frame[-1] @ np.linalg.inv(frame[time - 1 - n]) @ key for n in distances]
    return Statement(
        name="route-is-frame",
        section="§1",
        source=PAPER,
        assumptions="steps are invertible; here Haar on O(8)",
        parameters={"sweep": "distance", "distance": distances, "dim": dim},
        exact=np.array(walked),
        simulated=np.array(framed),
        stderr=0.0,
    )


def output_is_frame(rng: Generator) -> Statement:
    """Attention with values transported and a forget gate: the definition beside plain attention in the frame."""
    time, dim = 48, 6
    steps = simulate.haar_orthogonal(rng, time, dim)
    query, key, value = rng.standard_normal((3, time, dim))
    charge = np.cumsum(-rng.exponential(0.1, time))
    walked = route.attention_by_route(query, key, value, steps, charge)
    framed = route.attention_by_frame(query, key, value, steps, charge)
    rows = list(range(0, time, 3))
    return Statement(
        name="output-is-frame",
        section="§1",
        source=OWN,
        assumptions="steps are invertible, the bias is a difference c_i - c_j; here Haar on O(6) and log-decays",
        parameters={"sweep": "query", "query": rows, "dim": dim},
        exact=walked[rows, 0],
        simulated=framed[rows, 0],
        stderr=0.0,
    )
