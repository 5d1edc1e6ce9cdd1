"""`longroute train`: one run."""

import signal
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import torch
import tyro
from rich.console import Console

from longroute.attention import parse_encoding
from longroute.cli.progress import run_progress
from longroute.cli.settings import with_settings
from longroute.compare import TextSpec, preset
from longroute.compare.recall import check_task
from longroute.compare.text import prepare_text
from longroute.compare.worker import Progress
from longroute.data.windows import WindowSampler
from longroute.errors import InputError
from longroute.task import parse_task
from longroute.train import NonFiniteError, RunFolder, train
from longroute.train.loop import build_model


@dataclass(frozen=True)
class Train:
    """Train one encoding and leave its folder: configuration, tokenizer, records and weights (safetensors).

    Stop it at any moment; the same command goes on where it was. Exit code 1 when the loss stops being finite.
    """

    encoding: str
    """What to train, such as rope-qk, learned-qkv+forget or alibi; `longroute encodings` lists what there is."""
    out: Path
    """Folder of the run."""
    preset: str = "mini"
    """Model, optimisation and vocabulary to begin from."""
    task: str | None = None
    """What to train on instead of text, such as mqar:pairs=8 or needle; `longroute tasks` lists them."""
    seed: int = 0
    """Of the weights, the order of the text and frozen random angles."""
    text: tuple[Path, ...] = ()
    """Your own text: files or folders of txt, md, jsonl, parquet. Default: the books that come with longroute."""
    heldout: tuple[Path, ...] = ()
    """Text to keep apart. Default: the last tenth of each document of --text."""
    text_key: str = "text"
    """Key or column of the text in jsonl and parquet files."""
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="KEY=VALUE…")] = field(default=())
    """Single settings over the preset's, such as train.tokens=2000000 model.width=96; task_train.tokens with --task."""

    def run(self, console: Console) -> int:
        tasks = () if self.task is None else (parse_task(self.task),)
        for setting in self.set:
            if tasks and setting.startswith(("train.", "model.")):
                raise InputError(f"--set {setting}: with --task it is task_{setting}")
        chosen = replace(preset(self.preset), encodings=(parse_encoding(self.encoding),), seeds=(self.seed,))
        spec = replace(with_settings(chosen, self.set), tasks=tasks)
        prepared, _ = prepare_text(TextSpec(self.text, self.heldout, self.text_key), spec.model.vocabulary)
        runs = spec.runs(vocabulary=prepared.train.vocab_size, text_hash=prepared.train.text_hash)
        name, run = list(runs.items())[-1]  # the task's, if there is one
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        folder = RunFolder(self.out)
        build_model(run, torch.device("cpu"))  # what can't be built or trained is found before the folder is taken
        if run.task is None:
            WindowSampler(prepared.train, length=run.train.length, batch=run.train.batch, seed=run.seed)
        else:
            check_task(run, prepared, run.train.length)
        tokenizer = prepared.tokenizer_path if run.on_text else None
        with folder.open(run, tokenizer), run_progress(console) as show, stop_between_steps() as stopped:
            try:
                with closing(train(run, prepared.train if run.on_text else None, folder, device)) as records:
                    for record in records:
                        show(Progress(name, "train", record["step"], run.train.steps))
                        if stopped:
                            raise KeyboardInterrupt
            except NonFiniteError as error:
                show(Progress(name, "failed", reason=str(error)))
                return 1
            show(Progress(name, "done"))
        return 0


@contextmanager
def stop_between_steps():
    """A list that Ctrl-C fills, so that a loop can stop where its state is whole; a second one interrupts at once."""
    stopped: list[int] = []

    def handle(number: int, frame: object) -> None:
        if stopped:
            raise KeyboardInterrupt
        stopped.append(number)

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)
