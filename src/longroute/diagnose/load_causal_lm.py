"""Loading a causal language model from a local folder or a GGUF file, whole or not at all: no network, no pickles."""

from __future__ import annotations

import difflib
import importlib.util
import io
import json
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from longroute.diagnose.attention_tap import require_transformers
from longroute.diagnose.causal_lm import CausalLM
from longroute.errors import InputError, nearest

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedTokenizerBase

_CONFIG, _WEIGHTS, _INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
_VOCABULARIES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "*.tiktoken")
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")


def load_causal_lm(
    path: Path,
    *,
    tokenizer: Path | None = None,
    train_length: int | None = None,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
) -> CausalLM:
    """The model of a folder (config.json and safetensors, or one GGUF file) or of a GGUF file, in `dtype` on `device`.

    `tokenizer` is a folder or GGUF file with the tokenizer, if `path` has none; `train_length` the tokens of a training
    window, if the configuration doesn't say it or says something else. Nothing is downloaded, no code of the folder is
    run and nothing is unpickled. Raises InputError, naming the file, for whatever is missing, broken, unknown or does
    not fit together; what can be seen without reading the weights comes first.
    """
    require_transformers()
    place = _Place.of(Path(path))
    tokens = place if tokenizer is None else _Place.of(Path(tokenizer), tokenizer_only=True)
    tokens.check_tokenizer()
    with _quiet():
        config = _load_config(place)
        if not place.gguf:
            _check_weight_files(place.folder)
        tokenizer_ = _load_tokenizer(tokens)
        _check_vocabulary(tokenizer_, config, tokens, place)
        model = _load_weights(place, config, dtype)
        _check_finite(model, place)
        return CausalLM(model.to(device), tokenizer_, name=place.name, train_length=train_length)


@dataclass(frozen=True)
class _Place:
    """A folder, and the name of the GGUF file in it that has everything, None for config.json and safetensors."""

    folder: Path
    name: str
    gguf: str | None = None

    @classmethod
    def of(cls, path: Path, *, tokenizer_only: bool = False) -> _Place:
        """Raises InputError if nothing is there, or if a model's folder has no configuration."""
        if path.is_file() and path.suffix == ".gguf":
            return cls(path.parent, path.stem, _checked_gguf(path))
        if not path.is_dir():
            raise InputError(f"{path}: {'neither a folder nor a .gguf file' if path.exists() else 'no such folder'}")
        name, files = path.resolve().name, sorted(path.glob("*.gguf"))
        if tokenizer_only or any(path.glob("*.safetensors")) or (not files and (path / _CONFIG).exists()):
            return cls(path, name)
        if len(files) == 1:
            return cls(path, name, _checked_gguf(files[0]))
        if files:
            raise InputError(f"{path}: which of {', '.join(f.name for f in files)}? Give the path of one")
        raise InputError(f"{path}: no {_CONFIG}, so it isn't a model's folder")

    @property
    def file(self) -> Path:
        """What an error is about."""
        return self.folder / self.gguf if self.gguf else self.folder

    def options(self) -> dict[str, Any]:
        """What every loader of transformers is called with."""
        where = {"gguf_file": self.gguf} if self.gguf else {}
        return {**where, "local_files_only": True, "trust_remote_code": False}

    def check_tokenizer(self) -> None:
        """Raises InputError if a folder has no vocabulary: transformers would make an empty tokenizer of it."""
        if self.gguf is None and not any(any(self.folder.glob(name)) for name in _VOCABULARIES):
            raise InputError(f"{self.folder}: no tokenizer ({_VOCABULARIES[0]} …); give one with --tokenizer FOLDER")


def _checked_gguf(path: Path) -> str:
    """The file's name. Raises InputError if it isn't GGUF or can't be read here."""
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise InputError(f"{path}: not a GGUF file")
    missing = [name for name in ("gguf", "accelerate") if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(f"{path}: GGUF files need {' and '.join(missing)}: pip install {' '.join(missing)}")
    return path.name


def _load_config(place: _Place) -> PreTrainedConfig:
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig

    if not place.gguf:
        _check_model_type(place.folder / _CONFIG)
    with _as_input_error(place.file, "configuration"):
        config = AutoConfig.from_pretrained(place.folder, **place.options())
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise InputError(f"{place.file}: {config.model_type} isn't a causal language model")
    return config


def _check_model_type(path: Path) -> None:
    """Raises InputError if a config.json can't be read or has no model_type that transformers knows."""
    from transformers import CONFIG_MAPPING, __version__

    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"{path.parent}: no {_CONFIG}, so it isn't a model's folder") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}") from error
    kind = config.get("model_type") if isinstance(config, dict) else None
    if not isinstance(kind, str):
        raise InputError(f"{path}: no model_type, so transformers can't know the architecture")
    if kind not in CONFIG_MAPPING:
        close = difflib.get_close_matches(kind, CONFIG_MAPPING.keys(), n=5, cutoff=0)
        choices = nearest(kind, close).removesuffix(")")
        raise InputError(f"{path}: transformers {__version__} has no model_type {kind!r}{choices}, …)")


def _check_weight_files(folder: Path) -> None:
    """Raises InputError unless the safetensors files are all there and whole, by their headers."""
    index = folder / _INDEX
    if (folder / _WEIGHTS).exists():
        names = [_WEIGHTS]
    elif index.exists():
        try:
            names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise InputError(f"{index}: not an index of safetensors files ({error})") from error
    elif any(any(folder.glob(pattern)) for pattern in _PICKLES):
        raise InputError(f"{folder}: its weights are pickled, which can run code; convert them to safetensors")
    else:
        raise InputError(f"{folder}: no weights ({_WEIGHTS} or {_INDEX})")
    for name in names:
        try:
            with safe_open(folder / name, framework="pt"):
                pass
        except FileNotFoundError as error:
            raise InputError(f"{folder / name}: missing, though {_INDEX} names it") from error
        except (OSError, SafetensorError) as error:
            raise InputError(f"{folder / name}: broken or cut short ({error})") from error


def _load_tokenizer(place: _Place) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    with _as_input_error(place.file, "tokenizer"):
        return AutoTokenizer.from_pretrained(place.folder, **place.options())


def _check_vocabulary(
    tokenizer: PreTrainedTokenizerBase, config: PreTrainedConfig, tokens: _Place, place: _Place
) -> None:
    """Raises InputError if a token has no row in the embedding, or if there are no tokens.

    Tokens that were added to the vocabulary don't count: transformers adds some of its own to those of GGUF files.
    """
    ids = set(tokenizer.get_vocab().values()) - set(tokenizer.added_tokens_decoder)
    if not ids:
        raise InputError(f"{tokens.file}: the tokenizer has no tokens; give one with --tokenizer FOLDER")
    rows = config.get_text_config().vocab_size
    if max(ids) >= rows:
        has = f"the tokenizer has {max(ids) + 1} tokens, but the embedding of {place.name} only {rows} rows"
        raise InputError(f"{tokens.file}: {has}")


def _load_weights(place: _Place, config: PreTrainedConfig, dtype: torch.dtype) -> Any:
    """Raises InputError for weights that are missing or of another shape, which transformers would draw at random."""
    from transformers import AutoModelForCausalLM

    with _as_input_error(place.file, "weights"):
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            place.folder,
            config=config,
            dtype=dtype,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            use_safetensors=True,
            **place.options(),
        )
    model, found = loaded
    for name, stored, expected in sorted(found["mismatched_keys"]):
        raise InputError(f"{place.file}: {name} is {tuple(stored)}, but {_CONFIG} makes it {tuple(expected)}")
    missing = sorted(found["missing_keys"])
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise InputError(f"{place.file}: the weights lack {missing[0]}{more}")
    return model


def _check_finite(model: nn.Module, place: _Place) -> None:
    """Raises InputError naming the first weight with a NaN or an infinity."""
    for name, weight in model.named_parameters():
        if not torch.isfinite(weight).all():
            raise InputError(f"{place.file}: {name} isn't finite")


@contextmanager
def _as_input_error(path: Path, what: str) -> Iterator[None]:
    """What transformers raises while loading, as one InputError line about `path`."""
    try:
        yield
    except Exception as error:  # broken files raise anything at all there
        why = textwrap.shorten(str(error), 300) or type(error).__name__
        raise InputError(f"{path}: transformers can't load the {what}: {why}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' progress bars, log lines and warnings; afterwards as before."""
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        # bars go to stderr, and that of GGUF files heeds no setting
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
