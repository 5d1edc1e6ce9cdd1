"""`longroute diagnose`: where a checkpoint breaks, and why."""

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from tyro.conf import Positional

from longroute.cli.progress import stage_progress
from longroute.data.corpus import embedded_books, read_documents, short_names
from longroute.diagnose import DiagnoseSpec, choose_text, diagnose, load_traced, open_diagnosis, resolve_lengths
from longroute.errors import InputError
from longroute.files import locked
from longroute.report.diagnosis import terminal_lines, write_diagnosis_page


@dataclass(frozen=True)
class Diagnose:
    """Measure where a model breaks as its context grows, predict it from short windows, and rank the causes.

    CHECKPOINT is a run's folder, a folder of a Hugging Face causal language model (config.json and safetensors), or a
    GGUF file. Writes prediction.json before anything long is measured, then diagnosis.json and diagnosis.html. Stop it
    at any moment; the same command goes on where it was.
    """

    checkpoint: Positional[Path]
    """What to diagnose."""
    text: tuple[Path, ...] = ()
    """Text to measure on: files or folders of txt, md, jsonl, parquet. Default: the held-out books of longroute."""
    text_key: str = "text"
    """Key or column of the text in jsonl and parquet files."""
    lengths: tuple[int, ...] = ()
    """Context lengths in tokens. Default: 1, 2, 4 … times the training length up to 8,192 tokens or twice it."""
    out: Path | None = None
    """Folder for the results. Default: `diagnosis` in a run's folder, else runs/diagnose-NAME."""
    spans: int = 6
    """Stretches of text, each as long as the longest length, at most."""
    tokenizer: Path | None = None
    """Folder or file of the tokenizer, where the checkpoint has none."""
    train_length: int | None = None
    """The length that the model was trained at, where its configuration says it wrongly."""

    def run(self, console: Console) -> int:
        spec = DiagnoseSpec(self.lengths, self.spans)
        if self.train_length is not None and self.train_length < 2:
            raise InputError(f"--train-length must be at least 2, not {self.train_length}")
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        given = read_documents(self.text, text_key=self.text_key) if self.text else embedded_books("heldout")
        documents = short_names(given)
        model = load_traced(self.checkpoint, device=device, tokenizer=self.tokenizer, train_length=self.train_length)
        lengths = resolve_lengths(spec, model.anatomy)
        text = choose_text(model, documents, lengths[-1], spec.spans)
        out = self._out()
        with locked(out):
            with stage_progress(console) as show, closing(diagnose(open_diagnosis(model, text, spec, out), out)) as job:
                for progress in job:
                    show(progress.stage, progress.done)
            result = json.loads((out / "diagnosis.json").read_text(encoding="utf-8"))
            page = write_diagnosis_page(result, out)
        for line in terminal_lines(result):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        console.print(f"report: {page}", markup=False, soft_wrap=True)
        return 0

    def _out(self) -> Path:
        if self.out is not None:
            return self.out
        if (self.checkpoint / "versions.json").exists():
            return self.checkpoint / "diagnosis"
        name = self.checkpoint.resolve().name
        if not name:
            raise InputError("--out: give a folder for the results")
        return Path("runs") / f"diagnose-{name}"
