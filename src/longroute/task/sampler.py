"""Training batches of a task, at whatever length the curriculum has come to."""

import math

import numpy as np
import torch

from longroute.data.windows import Batch
from longroute.task.samples import Source
from longroute.task.split import draw_split

_SHORTER = 0.3
"""Share of batches that go back to a shorter length, so that what was learned there is not lost."""


class TaskSampler:
    """Batches of about `tokens` tokens that depend on the seed, the step and the context alone."""

    def __init__(self, source: Source, *, tokens: int, seed: int):
        self.source, self.tokens, self.seed = source, tokens, seed

    def draw(self, step: int, context: int) -> Batch:
        """The batch of a step, from 0: samples of `context` tokens, or of fewer in every third batch or so."""
        generator = np.random.default_rng([self.seed, step])
        length = context
        if generator.random() < _SHORTER:
            length = round(math.exp(generator.uniform(math.log(self.source.shortest), math.log(context))))
        count = max(1, self.tokens // length)
        samples = draw_split(self.source, length, count, [self.seed, step], heldout=False)
        return Batch(torch.from_numpy(samples.inputs), torch.from_numpy(samples.targets), None)
