"""How a run trains: everything that, with the text, decides its every bit."""

from dataclasses import dataclass, field
from typing import Literal

from longroute.attention import Encoding
from longroute.errors import InputError
from longroute.model import ModelSpec
from longroute.task import Task


@dataclass(frozen=True)
class TrainSpec:
    """AdamW with a linear warm-up and a cosine to a tenth, on `tokens` tokens in windows of `length`."""

    length: int = 64
    """Context that is trained at, tokens."""
    tokens: int = 256_000
    """Training tokens; rounded up to whole steps."""
    batch: int = 8
    """Windows that go through the model at once."""
    accumulate: int = 1
    """Batches whose gradients make one step."""
    learning_rate: float = 2e-3
    """Peak learning rate."""
    warmup: float = 0.05
    """Share of the steps that the learning rate rises over."""
    weight_decay: float = 0.1
    """AdamW's decoupled decay of matrices; norms, biases and frozen tensors have none."""
    beta2: float = 0.99
    """AdamW's second moment; the first is 0.9."""
    clip: float = 1.0
    """Largest norm of the gradient."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of matrix products (autocast); auto: bfloat16 where the processor has it."""
    record_every: int = 25
    """Steps between records, whose loss is the mean over them. A task's curriculum looks at it as often."""

    def __post_init__(self):
        for name in ("length", "tokens", "batch", "accumulate", "record_every"):
            if getattr(self, name) < 1:
                raise InputError(f"train: {name} must be at least 1, not {getattr(self, name)}")
        if not (self.learning_rate > 0 and self.clip > 0 and self.weight_decay >= 0 and 0 <= self.warmup < 1):
            raise InputError(f"train: rates must be positive and 0 <= warmup < 1: {self}")
        if not 0 <= self.beta2 < 1:
            raise InputError(f"train: beta2 must be in [0, 1), not {self.beta2}")

    @property
    def tokens_per_step(self) -> int:
        return self.length * self.batch * self.accumulate

    @property
    def steps(self) -> int:
        return -(-self.tokens // self.tokens_per_step)


@dataclass(frozen=True)
class RunSpec:
    """One training run: an encoding in a model, trained so, from a seed, on a text or a task."""

    encoding: Encoding = field(default_factory=Encoding)
    """The position encoding."""
    model: ModelSpec = field(default_factory=ModelSpec)
    """The decoder."""
    train: TrainSpec = field(default_factory=TrainSpec)
    """The optimisation."""
    seed: int = 0
    """Of the weights, the order of the text and frozen random angles."""
    text_hash: str = ""
    """Of the training text; empty for a task that needs none."""
    task: Task | None = None
    """What it is trained to do, if not to predict text."""

    def __post_init__(self):
        if not 0 <= self.seed < 2**63:
            raise InputError(f"seed must be in [0, 2^63), not {self.seed}")

    @property
    def on_text(self) -> bool:
        """Whether it needs text: not for a task on made-up tokens."""
        return self.task is None or self.task.in_text
