"""What a comparison trains and measures, and the presets."""

from dataclasses import dataclass, field, replace

from longroute.attention import Encoding, encoding_name, parse_encoding
from longroute.errors import InputError, nearest
from longroute.evaluate import EvaluateSpec
from longroute.model import ModelSpec
from longroute.train import RunSpec, TrainSpec

CANDIDATES = (
    "rope-qk",
    "rope-qkv",
    "random-qk",
    "random-qkv",
    "learned-qk",
    "learned-qkv",
    "householder-qkv",
    "alibi",
    "log-distance",
    "rope-qk+forget",
    "learned-qkv+forget",
)
"""The paper's encodings, reflections beside its rotations, far-mass controls alone, and with a rotation."""

DIAL = (
    *(f"random-qk:slowest={slowest}" for slowest in (1.0, 0.1, 0.01, 0.001)),
    *(f"learned-qk:start=mixing,slowest={slowest}" for slowest in (1.0, 0.1, 0.01, 0.001)),
    "learned-qk:start=rope",
    "rope-qk",
)
"""The spread of a rotation's angles from wide in every plane to RoPE's, for what it costs and gives."""


@dataclass(frozen=True)
class ComparisonSpec:
    """Every encoding × every seed, in one model, trained and measured alike."""

    preset: str = "mini"
    """The preset that this began as; only a name."""
    encodings: tuple[Encoding, ...] = field(default_factory=lambda: tuple(map(parse_encoding, CANDIDATES)))
    """What is compared."""
    seeds: tuple[int, ...] = (0,)
    """A run each."""
    model: ModelSpec = field(default_factory=ModelSpec)
    """The decoder; its vocabulary is what the tokenizer is trained to."""
    train: TrainSpec = field(default_factory=TrainSpec)
    """The optimisation."""
    evaluate: EvaluateSpec = field(default_factory=EvaluateSpec)
    """The measurement."""

    def __post_init__(self):
        names = [encoding_name(encoding) for encoding in self.encodings]
        for what, items in (("encodings", names), ("seeds", self.seeds)):
            if not items:
                raise InputError(f"a comparison needs {what}")
            if len(set(items)) < len(items):
                raise InputError(f"{what} must differ from each other: {', '.join(map(str, items))}")
        self.evaluate.lengths(self.train.length)

    def runs(self, *, vocabulary: int, text_hash: str) -> dict[str, RunSpec]:
        """The runs by their names, for a tokenizer of `vocabulary` types and a training text; seeds vary slowest."""
        model = replace(self.model, vocabulary=vocabulary)
        return {
            f"{encoding_name(encoding)}-seed{seed}": RunSpec(encoding, model, self.train, seed, text_hash)
            for seed in self.seeds
            for encoding in self.encodings
        }


PRESETS = {
    "smoke": ComparisonSpec(
        preset="smoke",
        model=ModelSpec(layers=2, width=32, heads=2, kv_heads=1, head_dim=16, hidden=64, vocabulary=512),
        train=TrainSpec(length=64, tokens=40_000, batch=8, record_every=10),
        evaluate=EvaluateSpec(reach=32, spans=2),
    ),
    "mini": ComparisonSpec(),
    "standard": ComparisonSpec(
        preset="standard",
        seeds=(0, 1, 2),
        model=ModelSpec(layers=6, width=128, heads=4, kv_heads=4, head_dim=32, hidden=344, vocabulary=2048),
        train=TrainSpec(length=128, tokens=2_000_000),
    ),
    "paper": ComparisonSpec(
        preset="paper",
        seeds=(0, 1, 2),
        model=ModelSpec(layers=16, width=768, heads=12, kv_heads=12, head_dim=64, hidden=2048, vocabulary=50_257),
        train=TrainSpec(length=512, tokens=2_600_000_000, batch=64, accumulate=4, learning_rate=6e-4, record_every=50),
        evaluate=EvaluateSpec(spans=16),
    ),
}
"""smoke: everything, tiny. mini: ten minutes on two cores. standard: hours, three seeds. paper: its size, for GPUs."""


def preset(name: str) -> ComparisonSpec:
    """A preset by name. Raises InputError with the nearest name."""
    if name not in PRESETS:
        raise InputError(f"unknown preset {name!r}{nearest(name, PRESETS)}")
    return PRESETS[name]
