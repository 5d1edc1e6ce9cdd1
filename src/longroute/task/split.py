"""Training and held-out samples that never share one: which side a sample is on is read from the sample itself."""

import numpy as np

from longroute.errors import InputError
from longroute.task.samples import Samples, Source

_ROUNDS = 50
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def draw_split(source: Source, length: int, count: int, seed: list[int], *, heldout: bool) -> Samples:
    """`count` samples of one side, the same for the same seed whatever was drawn before.

    Half of what the source draws is of either side, so twice as many are drawn, and again if that doesn't do. Raises
    InputError for a source with hardly any different samples of this length.
    """
    generator = np.random.default_rng([*seed, length, int(heldout)])
    found: list[Samples] = []
    for _ in range(_ROUNDS):
        samples = source.draw(length, 2 * count + 2, generator, heldout=heldout)
        found.append(samples.take(np.flatnonzero(is_heldout(samples) == heldout)))
        if sum(map(len, found)) >= count:
            return _joined(found).take(np.arange(count))
    raise InputError(f"the task has too few different samples of {length} tokens to keep training and test apart")


def is_heldout(samples: Samples) -> np.ndarray:
    """The side of each sample, (sample): a bit of a hash of its tokens and targets."""
    with np.errstate(over="ignore"):
        mark = np.zeros(len(samples), dtype=np.uint64)
        for column in (*samples.inputs.T, *samples.targets.T):
            mark = (mark ^ column.astype(np.uint64)) * _MULTIPLIER
            mark ^= mark >> np.uint64(29)
    return mark >> np.uint64(63) == 1


def _joined(parts: list[Samples]) -> Samples:
    first = np.cumsum([0, *map(len, parts)])
    return Samples(
        np.concatenate([part.inputs for part in parts]),
        np.concatenate([part.targets for part in parts]),
        np.concatenate([part.row + start for part, start in zip(parts, first, strict=False)]),
        np.concatenate([part.places for part in parts]),
        np.concatenate([part.chance for part in parts]),
        {name: np.concatenate([part.slices[name] for part in parts]) for name in parts[0].slices},
    )
