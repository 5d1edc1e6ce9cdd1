"""Byte-level BPE: deterministic, lossless, and blind to text that spells the special token."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from longroute.data import tokenizer as module
from longroute.data.corpus import Document, embedded_books
from longroute.data.tokenizer import (
    END_OF_TEXT,
    encode,
    end_of_text_id,
    load_tokenizer,
    pieces,
    train_tokenizer,
    vocabulary_size,
)
from longroute.errors import InputError

BOOK = embedded_books("heldout")[0]
TOKENIZER = train_tokenizer([BOOK], vocab_size=600)
ODD = [
    "",
    " ",
    "\0\x01",
    "e\u0301 é",
    "👩‍👩‍👧",
    "\ufeff\u2028\x85\x1c a",
    "\ud7ff\ue000\U0010ffff",
    "\r\n\t  b  ",
    "日本語",
    "ﷺ",
]
SPELLED = f"a{END_OF_TEXT}b {END_OF_TEXT}"


def decode(ids: np.ndarray) -> str:
    return TOKENIZER.decode(ids.tolist(), skip_special_tokens=False)


@pytest.mark.parametrize("text", [*ODD, SPELLED])
def test_decoding_gives_the_text_back(text: str):
    assert decode(encode(TOKENIZER, text)) == text


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_decoding_gives_any_text_back(text: str):
    assert decode(encode(TOKENIZER, text)) == text


def test_ids_are_end_of_text_then_bytes_then_merges():
    assert end_of_text_id(TOKENIZER) == 0
    assert vocabulary_size(TOKENIZER) == 600
    assert vocabulary_size(train_tokenizer([BOOK], vocab_size=1_200)) == 1_200
    smallest = train_tokenizer([BOOK], vocab_size=257)
    assert vocabulary_size(smallest) == 257
    assert sorted(smallest.get_vocab().values()) == list(range(257))
    assert len(encode(smallest, "é x")) == 4  # bytes


def test_vocabulary_ends_where_a_small_corpus_does():
    assert vocabulary_size(train_tokenizer([Document("d", "abab")], vocab_size=2**31)) == 259
    assert vocabulary_size(train_tokenizer([Document("d", "")], vocab_size=300)) == 257


@pytest.mark.parametrize("size", [-1, 0, 256, 2**31 + 1])
def test_vocabulary_size_out_of_range_is_refused(size: int):
    with pytest.raises(InputError, match=f"vocabulary size is {size}; .* at least 257"):
        train_tokenizer([BOOK], vocab_size=size)


def test_no_documents_are_refused():
    with pytest.raises(InputError, match="no documents"):
        train_tokenizer([], vocab_size=300)


def test_training_is_deterministic_across_processes():
    code = (
        "import sys; from longroute.data import tokenizer, corpus\n"
        "book = corpus.embedded_books('heldout')[0]\n"
        "sys.stdout.write(tokenizer.train_tokenizer([book], vocab_size=600).to_str())"
    )
    for _ in range(2):
        again = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
        assert again.stdout == TOKENIZER.to_str()


def test_text_that_spells_the_end_of_text_is_plain_text(tmp_path: Path):
    TOKENIZER.save(str(tmp_path / "t.json"))
    spelling = train_tokenizer([Document("d", SPELLED * 100)], vocab_size=400)  # learns its pieces
    for tokenizer in (TOKENIZER, load_tokenizer(tmp_path / "t.json"), spelling):
        assert 0 not in encode(tokenizer, SPELLED)
        assert 0 not in encode(tokenizer, END_OF_TEXT)


def test_loaded_equals_saved_and_never_truncates_or_pads(tmp_path: Path):
    cutting = Tokenizer.from_str(TOKENIZER.to_str())
    cutting.enable_truncation(3)
    cutting.enable_padding(length=5_000)
    cutting.save(str(tmp_path / "t.json"))
    loaded = load_tokenizer(tmp_path / "t.json")
    np.testing.assert_array_equal(encode(loaded, BOOK.text[:10_000]), encode(TOKENIZER, BOOK.text[:10_000]))


def test_broken_tokenizer_files_are_named(tmp_path: Path):
    def refused(path: Path, part: str) -> None:
        with pytest.raises(InputError) as caught:
            load_tokenizer(path)
        assert str(path) in str(caught.value)
        assert part in str(caught.value)

    refused(tmp_path / "none.json", "no such")
    refused(tmp_path, "no such")
    path = tmp_path / "t.json"
    whole = TOKENIZER.to_str()
    for content in (b"", b"{}", whole[: len(whole) // 2].encode(), b"\xff\xfe", b"\0"):
        path.write_bytes(content)
        refused(path, "not a tokenizer")
    Tokenizer(models.BPE()).save(str(path))
    refused(path, END_OF_TEXT)


def test_a_tokenizer_without_end_of_text_is_refused():
    with pytest.raises(InputError, match="has no token"):
        end_of_text_id(Tokenizer(models.BPE()))


def test_vocabulary_size_covers_ids_with_gaps():
    assert vocabulary_size(Tokenizer(models.BPE({"a": 0, "b": 9}, []))) == 10


RUNS = Document("runs", "a\n\n\nb   c \n d\t\t e\n\n" * 99)
SPACED = train_tokenizer([BOOK, RUNS], vocab_size=900)  # merges runs of spaces
SPACES = st.sampled_from(
    ["\n\n", " \n", "  ", "\t", "\xa0", "\u2028", "\x1c", "'s ", "_ ", "² ", " '", "\u0301 ", "日 "]
)


@given(st.lists(SPACES | st.text("ab1é ._\n'"), max_size=30), st.integers(1, 6))
def test_pieces_rejoin_and_do_not_change_the_tokens(parts: list[str], size: int):
    text = "".join(parts)
    cut = list(pieces(text, size))
    assert "".join(cut) == text
    assert [i for piece in cut for i in SPACED.encode(piece).ids] == SPACED.encode(text).ids


def test_a_long_book_is_encoded_in_pieces_with_the_tokens_of_the_whole(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "PIECE", 1_000)
    text = BOOK.text[:200_000]
    monkeypatch.setattr(module, "pieces", lambda text: pieces(text, 1_000))
    arrays = list(module.encode_pieces(TOKENIZER, text))
    assert len(arrays) > 150
    assert np.concatenate(arrays).tolist() == TOKENIZER.encode(text).ids
    assert arrays[0].dtype == np.uint32


def test_a_tokenizer_that_pieces_would_change_encodes_whole(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "PIECE", 1)
    monkeypatch.setattr(module, "pieces", lambda text: pieces(text, 1))
    assert len(list(module.encode_pieces(TOKENIZER, "all over the world"))) == 4
    spaced, prefixed, wordless = (Tokenizer.from_str(TOKENIZER.to_str()) for _ in range(3))
    spaced.add_tokens([AddedToken("over the")])
    prefixed.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)  # pyright: ignore[reportAttributeAccessIssue]
    wordless.pre_tokenizer = None  # pyright: ignore[reportAttributeAccessIssue]
    for tokenizer in (spaced, prefixed, wordless):
        assert len(list(module.encode_pieces(tokenizer, "all over the world"))) == 1
    assert json.loads(spaced.to_str())["added_tokens"][1]["content"] == "over the"
    assert list(encode(spaced, "all over the world")).count(600) == 1
