"""What a comparison trains and measures, and the presets."""

from dataclasses import dataclass, field, replace

from longroute.attention import Encoding, encoding_name, parse_encoding
from longroute.errors import InputError, nearest
from longroute.evaluate import EvaluateSpec
from longroute.model import ModelSpec
from longroute.task import MQAR, Copy, FlipFlop, Needle, Passkey, PhoneBook, Task, WordProblem, task_name
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
    "learned-qkv+forget",
    "rope-qk:theta=100.0,share=0.5+log-distance",
)
"""The paper's encodings, reflections beside its rotations, far-mass controls alone and with a rotation, and one found
in a search for holding *and* remembering (LOG.md)."""

DIAL = (
    *(f"random-qk:slowest={slowest}" for slowest in (1.0, 0.1, 0.01, 0.001)),
    *(f"learned-qk:start=mixing,slowest={slowest}" for slowest in (1.0, 0.1, 0.01, 0.001)),
    "learned-qk:start=rope",
    "rope-qk",
)
"""The spread of a rotation's angles from wide in every plane to RoPE's, for what it costs and gives."""


MOST_TASKS = 9
"""As many as a report has pictures for."""

TASK_MODEL = ModelSpec(layers=2, width=64, heads=4, kv_heads=4, head_dim=16, hidden=128, initial=0.06)
"""Two layers recall: one joins a key to its value, one looks it up."""

TASK_TRAIN = TrainSpec(tokens=700_000, learning_rate=3e-3, record_every=10)
"""Many small steps, and a curriculum (`train.batches`): the task is learned in seconds."""


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
    tasks: tuple[Task, ...] = (MQAR(),)
    """What each encoding is also trained to recall, in a model of its own."""
    task_model: ModelSpec = TASK_MODEL
    """The decoder of tasks; its vocabulary is the task's."""
    task_train: TrainSpec = TASK_TRAIN
    """The optimisation on tasks."""

    def __post_init__(self):
        names = [encoding_name(encoding) for encoding in self.encodings]
        tasks = [task_name(task) for task in self.tasks]
        for what, items in (("encodings", names), ("seeds", self.seeds), ("tasks", tasks)):
            if not items and what != "tasks":
                raise InputError(f"a comparison needs {what}")
            if len(set(items)) < len(items):
                raise InputError(f"{what} must differ from each other: {', '.join(map(str, items))}")
        if len(tasks) > MOST_TASKS:
            raise InputError(f"a comparison takes at most {MOST_TASKS} tasks, not {len(tasks)}")
        self.evaluate.lengths(self.train.length)

    def runs(self, *, vocabulary: int, text_hash: str) -> dict[str, RunSpec]:
        """The runs by their names, for a tokenizer of `vocabulary` types and a training text; seeds vary slowest."""
        model = replace(self.model, vocabulary=vocabulary)
        runs = {}
        for seed in self.seeds:
            for encoding in self.encodings:
                name = f"{encoding_name(encoding)}-seed{seed}"
                runs[name] = RunSpec(encoding, model, self.train, seed, text_hash)
            for task in self.tasks:
                runs |= self._task_runs(task, seed, vocabulary, text_hash)
        return runs

    def _task_runs(self, task: Task, seed: int, vocabulary: int, text_hash: str) -> dict[str, RunSpec]:
        types = vocabulary if task.in_text else task.source(None).vocabulary
        model = replace(self.task_model, vocabulary=types)
        text = text_hash if task.in_text else ""
        return {
            f"{encoding_name(encoding)}-seed{seed}-{task_name(task)}": RunSpec(
                encoding, model, self.task_train, seed, text, task
            )
            for encoding in self.encodings
        }


PRESETS = {
    "smoke": ComparisonSpec(
        preset="smoke",
        model=ModelSpec(layers=2, width=32, heads=2, kv_heads=1, head_dim=16, hidden=64, vocabulary=512),
        train=TrainSpec(length=64, tokens=40_000, batch=8, record_every=10),
        evaluate=EvaluateSpec(reach=32, spans=2),
        task_train=replace(TASK_TRAIN, tokens=40_000, record_every=3),
    ),
    "mini": ComparisonSpec(),
    "standard": ComparisonSpec(
        preset="standard",
        seeds=(0, 1, 2),
        model=ModelSpec(layers=6, width=128, heads=4, kv_heads=4, head_dim=32, hidden=344, vocabulary=2048),
        train=TrainSpec(length=128, tokens=2_000_000),
        tasks=(MQAR(pairs=8, keys=64, values=64), Copy(), FlipFlop(), PhoneBook(), WordProblem(group="S3"), Needle()),
        task_train=replace(TASK_TRAIN, length=128, tokens=4_000_000),
    ),
    "paper": ComparisonSpec(
        preset="paper",
        seeds=(0, 1, 2),
        model=ModelSpec(layers=16, width=768, heads=12, kv_heads=12, head_dim=64, hidden=2048, vocabulary=50_257),
        train=TrainSpec(length=512, tokens=2_600_000_000, batch=64, accumulate=4, learning_rate=6e-4, record_every=50),
        evaluate=EvaluateSpec(spans=16),
        tasks=(
            MQAR(pairs=64, queries=64, keys=4096, values=4096),
            FlipFlop(),
            Copy(span=16, marks=8, alphabet=64),
            PhoneBook(name_length=4, digits=8),
            WordProblem(),
            Passkey(digits=5),
            Needle(keys=8, digits=5),
        ),
        task_model=ModelSpec(layers=4, width=256, heads=8, kv_heads=8, head_dim=32, hidden=688, initial=0.04),
        task_train=TrainSpec(length=512, tokens=400_000_000, batch=64, learning_rate=1e-3),
    ),
}
"""smoke: everything, tiny. mini: twelve minutes on two cores. standard: hours, three seeds. paper: its size, GPUs."""


def preset(name: str) -> ComparisonSpec:
    """A preset by name. Raises InputError with the nearest name."""
    if name not in PRESETS:
        raise InputError(f"unknown preset {name!r}{nearest(name, PRESETS)}")
    return PRESETS[name]
