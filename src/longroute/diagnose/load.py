"""Any checkpoint as a traced model: a run of Longroute's, or a Hugging Face causal language model."""

from pathlib import Path

import torch

from longroute.diagnose.decoder import load_decoder
from longroute.diagnose.load_causal_lm import load_causal_lm
from longroute.diagnose.traced import TracedModel
from longroute.errors import InputError
from longroute.train import RunFolder


def load_traced(
    checkpoint: Path, *, device: torch.device, tokenizer: Path | None = None, train_length: int | None = None
) -> TracedModel:
    """The model of a run's folder, of a folder with config.json and safetensors, or of a GGUF file.

    `tokenizer` and `train_length` are for the latter two, where the folder has none or says it wrongly. Raises
    InputError.
    """
    if not checkpoint.exists():
        raise InputError(f"{checkpoint}: no such file or folder")
    if not (checkpoint / "versions.json").exists():
        return load_causal_lm(checkpoint, tokenizer=tokenizer, train_length=train_length, device=device)
    if tokenizer is not None or train_length is not None:
        raise InputError(
            f"{checkpoint}: a run knows its tokenizer and training length; leave --tokenizer and --train-length out"
        )
    RunFolder(checkpoint).spec()
    return load_decoder(checkpoint, device)
