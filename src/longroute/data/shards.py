"""Token ids on disk: written once, memory-mapped ever after, so that a corpus needn't fit in memory.

A shard is a folder: `tokens.bin` (little-endian uint16 or uint32, documents one after the other, each with an
end-of-text id), `offsets.bin` (little-endian int64: where each begins, and the end) and `meta.json`.
"""

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from longroute.data.corpus import Document, corpus_hash
from longroute.data.tokenizer import (
    encode_pieces,
    end_of_text_id,
    load_tokenizer,
    train_tokenizer,
    vocabulary_size,
)
from longroute.errors import InputError

FORMAT = 1
ATTEMPTS = 3
META = {"format": int, "names": list, "vocab_size": int, "end_of_text": int, "tokens": int, "text_hash": str}


@dataclass(frozen=True)
class TokenShard:
    """Tokenised documents: `tokens` is memory-mapped, document i is `tokens[offsets[i] : offsets[i + 1]]`.

    Each document's last token is the end-of-text id. `vocab_size` is the tokenizer's (every id is below it),
    `text_hash` is the texts' `corpus_hash`.
    """

    tokens: np.ndarray
    offsets: np.ndarray
    names: tuple[str, ...]
    vocab_size: int
    text_hash: str

    def document(self, i: int) -> np.ndarray:
        """The token ids of document `i`, end-of-text included; a view, nothing is copied."""
        i = range(len(self.names))[i]  # negative counts from the end, out of range raises IndexError
        return self.tokens[self.offsets[i] : self.offsets[i + 1]]


@dataclass(frozen=True)
class Prepared:
    """What a run needs of its text: a tokenizer, trained on `train` alone, and both splits in its tokens."""

    tokenizer: Tokenizer
    tokenizer_path: Path
    train: TokenShard
    heldout: TokenShard


def prepare(
    train: Sequence[Document], heldout: Sequence[Document], *, vocab_size: int, cache: Path | None = None
) -> Prepared:
    """Train a tokenizer and tokenise both splits, or take all of it from the cache.

    The cache is `cache`, else $LONGROUTE_CACHE, else $XDG_CACHE_HOME/longroute, else ~/.cache/longroute. An
    entry belongs to the texts, the vocabulary size and the format; a broken one is made again. Two processes
    may prepare the same at once: the first to finish is kept, the other uses it.
    Raises InputError for an empty split, a vocabulary size out of range, or a cache that can't be written.
    """
    if not train or not heldout:
        raise InputError(f"no documents {'to train on' if not train else 'held out'}")
    hashes = corpus_hash(train), corpus_hash(heldout)
    key = hashlib.sha256(f"{FORMAT} {vocab_size} {' '.join(hashes)}".encode()).hexdigest()
    folder = (cache or _cache_folder()) / key[:32]
    prepared = _cached(folder, hashes)
    for _ in range(ATTEMPTS):  # the first suffices unless another process is replacing a broken entry
        if prepared is None:
            _fill(folder, {"train": train, "heldout": heldout}, vocab_size)
            prepared = _cached(folder, hashes)
    if prepared is None:
        raise InputError(f"{folder}: this cache entry was just written and can't be read")
    return replace(
        prepared,
        train=replace(prepared.train, names=tuple(d.name for d in train)),
        heldout=replace(prepared.heldout, names=tuple(d.name for d in heldout)),
    )


def write_shard(documents: Sequence[Document], tokenizer: Tokenizer, folder: Path) -> TokenShard:
    """Tokenise `documents` into `folder`, which appears complete or not at all, and open it.

    uint16 for a vocabulary of up to 65,536, uint32 above. A shard that is there already is replaced.
    Raises InputError without documents, or if something else than a shard lies at `folder`.
    """
    if not documents:
        raise InputError(f"{folder}: no documents to write")
    free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    if not free and not (folder / "tokens.bin").is_file():
        raise InputError(f"{folder}: something else than a token shard is there already")
    with _beside(folder) as unfinished:
        _write(documents, tokenizer, unfinished)
        _publish(unfinished, folder)
    return open_shard(folder)


def open_shard(folder: Path) -> TokenShard:
    """Memory-map a shard. Raises InputError, naming the file, for anything that doesn't fit together."""
    meta = _read_meta(folder / "meta.json")
    offsets = np.array(_map(folder / "offsets.bin", np.dtype("<i8"), len(meta["names"]) + 1))
    if offsets[0] != 0 or offsets[-1] != meta["tokens"] or np.any(np.diff(offsets) < 1):
        raise InputError(f"{folder / 'offsets.bin'}: not increasing from 0 to {meta['tokens']}")
    tokens = _map(folder / "tokens.bin", _dtype(meta["vocab_size"]), meta["tokens"])
    if np.any(tokens[offsets[1:] - 1] != meta["end_of_text"]):
        raise InputError(f"{folder / 'tokens.bin'}: a document doesn't end with id {meta['end_of_text']}")
    return TokenShard(tokens, offsets, tuple(meta["names"]), meta["vocab_size"], meta["text_hash"])


def _cache_folder() -> Path:
    if own := os.environ.get("LONGROUTE_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "longroute"


def _cached(folder: Path, hashes: tuple[str, ...]) -> Prepared | None:
    """A cache entry if it is there and whole."""
    path = folder / "tokenizer.json"
    try:
        train, heldout = open_shard(folder / "train"), open_shard(folder / "heldout")
        found = Prepared(load_tokenizer(path), path, train, heldout)
    except (InputError, OSError):
        return None
    fits = train.vocab_size == heldout.vocab_size == vocabulary_size(found.tokenizer)
    return found if fits and (train.text_hash, heldout.text_hash) == hashes else None


def _fill(folder: Path, splits: dict[str, Sequence[Document]], vocab_size: int) -> None:
    """Make a cache entry, unless another process has made it in the meantime."""
    tokenizer = train_tokenizer(splits["train"], vocab_size=vocab_size)
    try:
        with _beside(folder) as unfinished:
            (unfinished / "tokenizer.json").write_text(tokenizer.to_str(pretty=True), encoding="utf-8")
            hashes = tuple(write_shard(d, tokenizer, unfinished / n).text_hash for n, d in splits.items())
            if _cached(folder, hashes) is None:
                _publish(unfinished, folder)
    except OSError as error:
        raise InputError(
            f"{folder.parent}: can't write the cache: {error.strerror}; set LONGROUTE_CACHE to another folder"
        ) from None


@contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """A new hidden folder next to `folder` to write into; whatever is still there at the end is removed."""
    unfinished = folder.parent / f".{folder.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _publish(unfinished: Path, folder: Path) -> None:
    """Rename `unfinished` to `folder`, moving away what stands there."""
    for attempt in range(ATTEMPTS):
        try:
            unfinished.rename(folder)
            return
        except OSError:
            if attempt == ATTEMPTS - 1:
                raise
        with suppress(FileNotFoundError):  # another process may have moved it
            old = folder.rename(unfinished.with_suffix(f".{attempt}.old"))
            shutil.rmtree(old) if old.is_dir() else old.unlink()


def _write(documents: Sequence[Document], tokenizer: Tokenizer, folder: Path) -> None:
    """Write the three files of a shard, a piece of a document in memory at a time."""
    size, end = vocabulary_size(tokenizer), end_of_text_id(tokenizer)
    offsets = [0]
    with (folder / "tokens.bin").open("wb") as file:
        for document in documents:
            for ids in chain(encode_pieces(tokenizer, document.text), [np.array([end])]):
                file.write(ids.astype(_dtype(size)).tobytes())
            offsets.append(file.tell() // _dtype(size).itemsize)
    (folder / "offsets.bin").write_bytes(np.array(offsets, dtype="<i8").tobytes())
    meta = {
        "format": FORMAT,
        "names": [document.name for document in documents],
        "vocab_size": size,
        "end_of_text": end,
        "tokens": offsets[-1],
        "text_hash": corpus_hash(documents),
    }
    (folder / "meta.json").write_text(json.dumps(meta) + "\n", encoding="utf-8")


def _read_meta(path: Path) -> dict[str, Any]:
    """A shard's metadata, each field of the right type."""
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: can't read this token shard: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise InputError(f"{path}: not a token shard of format {FORMAT}")
    for field, kind in META.items():
        if type(meta.get(field)) is not kind:
            raise InputError(f"{path}: {field!r} must be of type {kind.__name__}, found {meta.get(field)!r}")
    return meta


def _dtype(vocab_size: int) -> np.dtype:
    return np.dtype("<u2") if vocab_size <= 2**16 else np.dtype("<u4")


def _map(path: Path, dtype: np.dtype, count: int) -> np.ndarray:
    """Memory-map a file of exactly `count` numbers."""
    size, expected = path.stat().st_size if path.is_file() else None, count * dtype.itemsize
    if size is None or size != expected or count < 1:
        raise InputError(f"{path}: expected a file of {expected} bytes, found {size}")
    return np.memmap(path, dtype=dtype, mode="r", shape=(count,))
