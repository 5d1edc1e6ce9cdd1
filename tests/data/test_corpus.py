"""The embedded books, and hash and tails of documents."""

import hashlib
import json
import lzma
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longroute.data import corpus
from longroute.data.corpus import Document, corpus_hash, embedded_books, hold_out_tails
from longroute.errors import InputError

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def documents(*texts: str) -> list[Document]:
    return [Document(f"d{i}", text) for i, text in enumerate(texts)]


def test_held_out_books_are_two_of_a_known_author_and_one_of_an_unknown():
    assert [book.name for book in embedded_books("heldout")] == [
        "northanger-abbey",
        "persuasion",
        "moby-dick",
    ]


def test_splits_are_disjoint_and_together_are_the_manifest():
    manifest = json.loads((resources.files("longroute.data") / "books" / "MANIFEST.json").read_text())
    train, heldout = embedded_books("train"), embedded_books("heldout")
    assert sorted(book.name for book in train + heldout) == sorted(entry["slug"] for entry in manifest)
    assert {book.text for book in train}.isdisjoint(book.text for book in heldout)
    lengths = {entry["slug"]: entry["characters"] for entry in manifest}
    assert all(len(book.text) == lengths[book.name] for book in train + heldout)
    assert {entry["licence"] for entry in manifest} == {"public domain"}


def test_books_have_no_boilerplate_and_no_wrapped_prose():
    for book in embedded_books("train") + embedded_books("heldout"):
        lowered = book.text.lower()
        assert "gutenberg" not in lowered
        assert "http" not in lowered
        assert "\r" not in book.text
        assert "\n\n\n" not in book.text
        assert book.text.endswith("\n")
    emma = next(book for book in embedded_books("train") if book.name == "emma")
    assert "a comfortable home and happy disposition, seemed to unite some of the best" in emma.text
    assert "\nLords of the earth! their luxury and ease.\n" in emma.text  # verse keeps its lines
    moby = embedded_books("heldout")[-1].text
    assert moby.startswith("MOBY DICK; OR THE WHALE\n\nBy Herman Melville\n\nETYMOLOGY.\n")
    assert moby.endswith("only found another orphan.\n")


def test_unknown_split_names_the_nearest():
    with pytest.raises(InputError, match="did you mean 'heldout'"):
        embedded_books("held-out")  # pyright: ignore[reportArgumentType]


def test_damaged_book_is_refused():
    entry = {"slug": "emma", "sha256": hashlib.sha256(b"right").hexdigest()}
    assert corpus._unpack(lzma.compress(b"right"), entry) == "right"
    for packed in (lzma.compress(b"wrong"), b"not xz", b""):
        with pytest.raises(InputError, match="'emma' is damaged"):
            corpus._unpack(packed, entry)


def test_hash_depends_on_texts_order_and_boundaries_only():
    base = corpus_hash(documents("ab", "c"))
    assert base == corpus_hash([Document("other", "ab"), Document("names", "c")])
    others = [
        documents("a", "bc"),
        documents("abc"),
        documents("c", "ab"),
        documents("ab", "c", ""),
        documents(),
    ]
    assert len({base, *map(corpus_hash, others)}) == 1 + len(others)


@given(st.lists(TEXTS, max_size=4), st.lists(TEXTS, max_size=4))
def test_hash_is_equal_exactly_for_equal_texts(first: list[str], second: list[str]):
    assert (corpus_hash(documents(*first)) == corpus_hash(documents(*second))) == (first == second)


def test_hash_refuses_a_lone_surrogate_by_name():
    with pytest.raises(InputError, match="d0: lone surrogate at character 2"):
        corpus_hash(documents("ab\ud800"))


@given(TEXTS.filter(str.strip), st.floats(0.01, 0.5))
def test_tails_rejoin_to_the_document(text: str, fraction: float):
    whole = text * (1 + 2_000 // len(text))
    train, heldout = hold_out_tails(documents(whole), fraction)
    assert train[0].text + heldout[0].text == whole
    assert fraction * len(whole) - 1 <= len(heldout[0].text) <= fraction * len(whole) + 201


def test_tail_is_cut_at_whitespace_where_there_is_some():
    (train,), (heldout,) = hold_out_tails(documents("word " * 1_000))
    assert train.text.endswith("word")
    assert heldout.text.startswith(" word")
    assert heldout.name == "d0 (tail)"
    (train,), (heldout,) = hold_out_tails(documents("x" * 3_000 + "\n"))
    assert len(heldout.text) == 300


def test_short_documents_stay_whole_in_training():
    train, heldout = hold_out_tails(documents("a" * 1_999, "b" * 2_000))
    assert train[0].text == "a" * 1_999
    assert [document.name for document in heldout] == ["d1 (tail)"]
    with pytest.raises(InputError, match="nothing to hold out"):
        hold_out_tails(documents("a" * 1_999))
    with pytest.raises(InputError, match="nothing to hold out"):
        hold_out_tails([])


@pytest.mark.parametrize("fraction", [0.0, -0.1, 0.51, float("nan")])
def test_fraction_out_of_range_is_refused(fraction: float):
    with pytest.raises(InputError, match="fraction"):
        hold_out_tails(documents("a" * 5_000), fraction)
