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
from longroute.compare.text import prepare_text
from longroute.compare.worker import Progress
from longroute.data.windows import WindowSampler
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
    seed: int = 0
    """Of the weights, the order of the text and frozen random angles."""
    text: tuple[Path, ...] = ()
    """Your own text: files or folders of txt, md, jsonl, parquet. Default: the books that come with longroute."""
    heldout: tuple[Path, ...] = ()
    """Text to keep apart. Default: the last tenth of each document of --text."""
    text_key: str = "text"
    """Key or column of the text in jsonl and parquet files."""
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="KEY=VALUE…")] = field(default=())
    """Single settings over the preset's, such as train.tokens=2000000 model.width=96."""

    def run(self, console: Console) -> int:
        chosen = replace(preset(self.preset), encodings=(parse_encoding(self.encoding),), seeds=(self.seed,))
        spec = with_settings(chosen, self.set)
        prepared, _ = prepare_text(TextSpec(self.text, self.heldout, self.text_key), spec.model.vocabulary)
        runs = spec.runs(vocabulary=prepared.train.vocab_size, text_hash=prepared.train.text_hash)
        ((name, run),) = runs.items()
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        WindowSampler(prepared.train, length=run.train.length, batch=run.train.batch, seed=run.seed)
        build_model(run, torch.device("cpu"))  # what can't be built or trained is found before the folder is taken
        folder = RunFolder(self.out)
        with folder.open(run, prepared.tokenizer_path), run_progress(console) as show, stop_between_steps() as stopped:
            try:
                with closing(train(run, prepared.train, folder, device)) as records:
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
