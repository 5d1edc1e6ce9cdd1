"""`longroute generate`: the text that a trained run goes on with."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, takewhile
from pathlib import Path

import torch
from rich.console import Console
from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream
from tyro.conf import Positional

from longroute.data.tokenizer import encode, end_of_text_id, load_tokenizer
from longroute.errors import InputError
from longroute.evaluate import load_run
from longroute.model import GenerateSpec, generate
from longroute.train import RunFolder


@dataclass(frozen=True)
class Generate:
    """Write a prompt and what a trained run goes on with, as it comes, to stdout; at the end, its speed to stderr.

    The same seed writes the same text. The model's end of a document ends the text.
    """

    folder: Positional[Path]
    """Folder of a run, of `longroute train` or under runs/ of a comparison."""
    prompt: str = ""
    """Text to go on from."""
    prompt_file: Path | None = None
    """File of the text to go on from (UTF-8, kept as it is), in place of --prompt."""
    tokens: int = 200
    """Tokens to write after the prompt, at most."""
    temperature: float = 0.8
    """Above 1 evens the probabilities out, below sharpens them; 0 takes the likeliest token every time."""
    top_p: float = 0.95
    """Draw from the fewest likeliest tokens whose probabilities sum to at least this; 1 draws from all."""
    seed: int = 0
    """Of the draws."""

    def run(self, console: Console) -> int:
        spec = GenerateSpec(self.tokens, self.temperature, self.top_p, self.seed)
        text, run = self._text(), RunFolder(self.folder)
        model = load_run(run, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
        tokenizer = load_tokenizer(run.tokenizer)
        prompt = encode(tokenizer, text).tolist()
        if not prompt:
            raise InputError(f"{self.prompt_file or '--prompt'}: no text to go on from")
        end, times = end_of_text_id(tokenizer), []
        tokens = takewhile(lambda token: token != end, (int(token) for token in generate(model, [prompt], spec)))
        try:
            for piece in decoded(tokenizer, chain(prompt, _timed(tokens, times))):
                print(piece, end="", flush=True)
        finally:  # also when it is stopped
            print(flush=True)
            console.print(_pace(times), markup=False, highlight=False, soft_wrap=True)
        return 0

    def _text(self) -> str:
        """The prompt. Raises InputError unless it is given once, and as UTF-8."""
        if bool(self.prompt) == (self.prompt_file is not None):
            raise InputError("give the text to go on from as --prompt TEXT or --prompt-file FILE, one of the two")
        return _typed(self.prompt) if self.prompt_file is None else _read(self.prompt_file)


def decoded(tokenizer: Tokenizer, tokens: Iterable[int]) -> Iterator[str]:
    """The text of tokens, piece by piece as they come, never a part of a character; joined, it is all they decode to.

    Bytes that are no UTF-8 become U+FFFD, as they do in `tokenizer.decode`.
    """
    stream, seen, length = DecodeStream(skip_special_tokens=False), [], 0
    for token in tokens:
        seen.append(token)
        if piece := stream.step(tokenizer, token):
            length += len(piece)
            yield piece
    if rest := tokenizer.decode(seen, skip_special_tokens=False)[length:]:  # an unfinished character
        yield rest


def _typed(prompt: str) -> str:
    """The prompt as it is. Raises InputError for bytes of the command line that were no UTF-8."""
    try:
        prompt.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(f"--prompt: invalid UTF-8 at character {error.start}") from None
    return prompt


def _read(file: Path) -> str:
    """The text of a UTF-8 file. Raises InputError naming the file, and the byte that is wrong."""
    try:
        return file.read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(f"{file}: can't be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: invalid UTF-8 at byte {error.start} (0x{error.object[error.start]:02x})") from None


def _timed(tokens: Iterable[int], times: list[float]) -> Iterator[int]:
    """The same tokens; `times` gets the second at which each came."""
    for token in tokens:
        times.append(time.perf_counter())
        yield token


def _pace(times: list[float]) -> str:
    """How many tokens came, and how fast after the first, which waits for the whole prompt."""
    line = f"tokens generated: {len(times)}"
    if len(times) < 2:
        return line
    return f"{line}, tokens per second: {(len(times) - 1) / (times[-1] - times[0]):.1f}"
