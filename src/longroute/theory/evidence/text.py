"""Evidence from a trained model: is the decay of its routes on real text that of independent steps?

These statements may well be false, which says that a text's steps are not independent; no formula is refuted by it.
"""

from collections.abc import Iterator

import numpy as np

from longroute.theory.evidence.sources import PAPER
from longroute.theory.ranges import Array, ComplexArray, Integers
from longroute.theory.statement import Statement
from longroute.theory.text_steps import coherences, fitted_radius

PREFIX = "text-steps"
"""What the names of these statements begin with."""


def text_statements(angles: Array) -> Iterator[Statement]:
    """The slowest, the median and the fastest plane of a model, from `angle_sequence`."""
    radius = np.abs(np.exp(1j * angles).mean(axis=(1, 3)))
    # Rounded, so that planes that are alike (RoPE's) are taken in order, not by the last bits of their means.
    order = np.argsort(-radius.round(9), axis=None, kind="stable")
    for which, place in (("slowest", order[0]), ("median", order[order.size // 2]), ("fastest", order[-1])):
        layer, head, plane = (int(i) for i in np.unravel_index(place, radius.shape))
        yield decay_on_text(f"{PREFIX}-{which}", angles[layer, :, head, :, plane], (layer, head, plane))


def decay_on_text(name: str, angles: Array, where: tuple[int, int, int]) -> Statement:
    """E[P] by distance in one plane, measured, beside |φ|^n, which it would be if steps were independent.

    The mean angle is taken out of both. The standard error is a jackknife over windows, of their difference.
    """
    distances = 2 ** np.arange(int(np.log2(angles.shape[1])))
    single, routes = np.exp(1j * angles).mean(axis=1), coherences(angles, distances)
    coherence, predicted = _measured_and_predicted(single, routes, distances)
    left_out = [
        np.subtract(*_measured_and_predicted(np.delete(single, i), np.delete(routes, i, axis=0), distances))
        for i in range(len(angles))
    ]
    stderr = np.std(left_out, axis=0) * (len(angles) - 1) ** 0.5
    fit = fitted_radius(distances, coherence, stderr)
    return Statement(
        name=name,
        section="§2",
        source=PAPER,
        assumptions="independent steps: what is tested here, on a trained model's steps over held-out text",
        parameters={
            "sweep": "distance",
            "distance": distances,
            "layer": where[0],
            "head": where[1],
            "plane": where[2],
            "windows": len(angles),
            "mean angle": float(np.angle(single.mean())),
            "r of one step": float(np.abs(single.mean())),
            "r fitted": fit[0] if fit else None,
            "fit error, nats": fit[1] if fit else None,
        },
        exact=predicted,
        simulated=coherence,
        stderr=stderr,
    )


def _measured_and_predicted(single: ComplexArray, routes: ComplexArray, distances: Integers) -> tuple[Array, Array]:
    phi = single.mean()
    turned_back = np.exp(-1j * np.angle(phi) * distances)
    return np.real(routes.mean(axis=0) * turned_back), np.abs(phi) ** distances
