"""§1 Route transport and its frame: P(j→i) = M_i M_{i-1} … M_{j+1} = A_i A_j⁻¹, and attention as plain attention.

Token t's step is inside the routes that end at or after t and start before t. Steps M are (time dim dim), invertible;
rows of queries, keys and values are (time dim); a charge c is (time) in nats and biases a score by c_i - c_j.
"""

import numpy as np
from scipy.special import softmax

from longroute.theory.ranges import Array, require


def route_transport(steps: Array, source: int, query: int) -> Array:
    """P(j→i) = M_i M_{i-1} … M_{j+1}, multiplied step by step; P(i→i) = I.

    arXiv 2606.24975, route transport. Raises ValueError unless 0 <= source <= query < time.
    """
    require(0 <= source <= query < len(steps), "0 <= source <= query < time")
    product = np.eye(steps.shape[-1])
    for step in steps[source + 1 : query + 1]:
        product = step @ product
    return product


def accumulated_frame(steps: Array) -> Array:
    """A_t = M_t M_{t-1} … M_0 for every token, (time dim dim); P(j→i) = A_i A_j⁻¹ for j <= i. Longroute."""
    frame = np.empty_like(steps)
    product = np.eye(steps.shape[-1])
    for t, step in enumerate(steps):
        product = step @ product
        frame[t] = product
    return frame


def attention_by_route(query: Array, key: Array, value: Array, steps: Array, charge: Array) -> Array:
    """The definition, route by route, values transported too:

        s_ij = q_iᵀ P(j→i) k_j / √d + c_i - c_j,    o_i = Σ_{j<=i} softmax(s_i)_j P(j→i) v_j.

    arXiv 2606.24975.
    """
    time, dim = query.shape
    output = np.empty_like(value)
    for i in range(time):
        routes = np.stack([route_transport(steps, j, i) for j in range(i + 1)])
        scores = np.einsum("d,jde,je->j", query[i], routes, key[: i + 1]) / dim**0.5 + charge[i] - charge[: i + 1]
        output[i] = np.einsum("j,jde,je->d", softmax(scores), routes, value[: i + 1])
    return output


def attention_by_frame(query: Array, key: Array, value: Array, steps: Array, charge: Array) -> Array:
    """The same output from plain causal attention in one global frame, the charge as two columns:

        q̃_i = (A_iᵀ q_i / √d, 1, c_i),    k̃_j = (A_j⁻¹ k_j, -c_j, 1),    o_i = A_i Σ_j softmax(q̃_iᵀ k̃)_j A_j⁻¹ v_j.

    Orthogonal steps make A⁻¹ = Aᵀ; contracting ones make A ever worse conditioned, so only short routes are safe.
    Longroute.
    """
    frame, one = accumulated_frame(steps), np.ones((len(charge), 1))
    pulled = np.einsum("tde,td->te", frame, query) / query.shape[1] ** 0.5
    pulled_key = np.linalg.solve(frame, key[..., None])[..., 0]
    pulled_value = np.linalg.solve(frame, value[..., None])[..., 0]
    rows = np.hstack([pulled, one, charge[:, None]])
    columns = np.hstack([pulled_key, -charge[:, None], one])
    scores = np.where(np.tri(len(charge), dtype=bool), rows @ columns.T, -np.inf)
    return np.einsum("tde,te->td", frame, softmax(scores, axis=1) @ pulled_value)
