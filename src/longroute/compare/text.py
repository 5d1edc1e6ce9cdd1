"""The text of a run or a comparison: the embedded books, or the user's own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longroute.data.corpus import corpus_hash, embedded_books, hold_out_tails, read_documents, short_names
from longroute.data.shards import Prepared, TokenShard, prepare
from longroute.errors import InputError

_MOST_NAMES = 100


@dataclass(frozen=True)
class TextSpec:
    """Where text comes from: the embedded books by default; with `text` alone, the last tenth of each is held out."""

    text: tuple[Path, ...] = ()
    """Files and folders to train on (txt, md, jsonl, parquet)."""
    heldout: tuple[Path, ...] = ()
    """Files and folders to measure on."""
    text_key: str = "text"
    """The key or column that holds the text of a jsonl or parquet file."""


def prepare_text(spec: TextSpec, vocabulary: int) -> tuple[Prepared, dict[str, Any]]:
    """Tokenizer and shards, cached, and what the summary says of them (names only, never a path).

    Raises InputError for anything wrong with the files, or held-out text without training text.
    """
    if spec.heldout and not spec.text:
        raise InputError("--heldout needs --text: the text to train on")
    if not spec.text:
        name, train, heldout = "embedded books", embedded_books("train"), embedded_books("heldout")
    elif spec.heldout:
        name, train, heldout = "own text", _read(spec.text, spec), _read(spec.heldout, spec)
    else:
        name = "own text, the last tenth of each document held out"
        train, heldout = hold_out_tails(_read(spec.text, spec))
    prepared = prepare(short_names(train), short_names(heldout), vocab_size=vocabulary)
    corpus = {
        "name": name,
        "train": _names(prepared.train),
        "heldout": _names(prepared.heldout),
        "train_tokens": len(prepared.train.tokens),
        "heldout_tokens": len(prepared.heldout.tokens),
        "vocabulary": prepared.train.vocab_size,
        "hash": corpus_hash((*train, *heldout)),
    }
    return prepared, corpus


def _read(paths: Sequence[Path], spec: TextSpec):
    return read_documents(paths, text_key=spec.text_key)


def _names(shard: TokenShard) -> list[str]:
    names = list(shard.names)
    more = len(names) - _MOST_NAMES
    return names if more <= 0 else [*names[:_MOST_NAMES], f"and {more} more"]
