"""Text to token ids: a byte-level BPE, trained on the corpus itself or loaded from a file.

Every byte is a token, so any text can be encoded and decoding gives it back. One special token ends a
document; text that merely spells it is encoded like any other text.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from longroute.data.corpus import Document
from longroute.errors import InputError

END_OF_TEXT = "<|endoftext|>"
SMALLEST_VOCABULARY = 257  # 256 bytes and the end-of-text token
LARGEST_VOCABULARY = 2**31
PIECE = 1 << 18  # characters encoded at a time; bounds the memory that offsets and token strings take


def train_tokenizer(documents: Sequence[Document], *, vocab_size: int) -> Tokenizer:
    """A byte-level BPE of at most `vocab_size` tokens (Sennrich et al. 2016; bytes and words as in GPT-2).

    The end-of-text token is id 0, the bytes are ids 1 to 256, merges follow in the order learned. The same
    texts give the same tokenizer. A small corpus runs out of pairs to merge: `vocabulary_size` tells.
    Raises InputError for a vocabulary size outside 257 … 2³¹ or without documents.
    """
    if not SMALLEST_VOCABULARY <= vocab_size <= LARGEST_VOCABULARY:
        raise InputError(
            f"vocabulary size is {vocab_size}; it must be at least {SMALLEST_VOCABULARY}"
            f" (256 bytes and the end-of-text token) and at most {LARGEST_VOCABULARY}"
        )
    if not documents:
        raise InputError("no documents to train a tokenizer on")
    # The trainer reserves memory for the whole vocabulary, but no corpus has more merges than bytes.
    reachable = SMALLEST_VOCABULARY + sum(len(document.text.encode("utf-8")) for document in documents)
    trainer = trainers.BpeTrainer(
        vocab_size=min(vocab_size, reachable),
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator((piece for d in documents for piece in pieces(d.text)), trainer)
    return _as_plain_text(tokenizer)


def load_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer in a `tokenizer.json`; truncation and padding that it may carry are switched off.

    Raises InputError, naming the file, if it is missing, broken, or has no end-of-text token.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such tokenizer file")
    try:
        tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # the Rust side raises nothing narrower
        raise InputError(f"{path}: not a tokenizer that can be read: {error}") from None
    if tokenizer.token_to_id(END_OF_TEXT) is None:
        raise InputError(f"{path}: the tokenizer has no token {END_OF_TEXT!r}")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return _as_plain_text(tokenizer)


def end_of_text_id(tokenizer: Tokenizer) -> int:
    """The id that ends a document: 0 in a tokenizer trained here. Raises InputError if there is none."""
    token = tokenizer.token_to_id(END_OF_TEXT)
    if token is None:
        raise InputError(f"the tokenizer has no token {END_OF_TEXT!r}")
    return token


def vocabulary_size(tokenizer: Tokenizer) -> int:
    """The largest id plus one: the rows that an embedding needs, also where ids have gaps."""
    return max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1


def encode(tokenizer: Tokenizer, text: str) -> np.ndarray:
    """The token ids of `text` (uint32), no end-of-text added."""
    return np.concatenate([np.empty(0, np.uint32), *encode_pieces(tokenizer, text)])


def encode_pieces(tokenizer: Tokenizer, text: str) -> Iterator[np.ndarray]:
    """The token ids of `text` in consecutive arrays, so that a text of any length takes little memory."""
    whole = len(text) <= PIECE or not _splits_at_spaces(tokenizer)
    for piece in [text] if whole else pieces(text):
        yield np.array(tokenizer.encode(piece, add_special_tokens=False).ids, dtype=np.uint32)


def pieces(text: str, size: int = PIECE) -> Iterator[str]:
    """Consecutive parts of `text`, cut where a byte-level BPE gives the same tokens with and without the cut.

    A cut stands between a letter, digit or underscore and a space or line break. GPT-2's word pattern always
    begins a new word there: none of its branches has whitespace after anything else, and none looks behind.
    A part is longer than `size` characters by the way to the next such place.
    """
    start = 0
    place = re.compile(r"(?<=\w)[ \n]")
    while cut := place.search(text, start + size):
        yield text[start : cut.start()]
        start = cut.start()
    yield text[start:]


def _splits_at_spaces(tokenizer: Tokenizer) -> bool:
    """Whether the argument of `pieces` holds for this tokenizer, which may come from anywhere."""
    words = tokenizer.pre_tokenizer
    byte_level = isinstance(words, pre_tokenizers.ByteLevel) and words.use_regex and not words.add_prefix_space
    added = tokenizer.get_added_tokens_decoder().values()  # one that isn't special may have a space inside
    return byte_level and tokenizer.normalizer is None and all(token.special for token in added)


def _as_plain_text(tokenizer: Tokenizer) -> Tokenizer:
    """Encode text that spells a special token as plain text. A saved tokenizer doesn't remember this."""
    tokenizer.encode_special_tokens = True
    return tokenizer
