"""Token shards on disk, and the cache of a tokenizer with two of them."""

import json
import shutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models

from longroute.data import shards
from longroute.data.corpus import Document, corpus_hash
from longroute.data.shards import Prepared, TokenShard, open_shard, prepare, write_shard
from longroute.data.tokenizer import END_OF_TEXT, encode, train_tokenizer
from longroute.errors import InputError

DOCUMENTS = [
    Document("a", "the cat sat on the mat " * 20),
    Document("b", ""),
    Document("c", f"é\0😀{END_OF_TEXT}"),
]
HELDOUT = [Document("h", "zebra zeal " * 99)]
TOKENIZER = train_tokenizer(DOCUMENTS, vocab_size=280)


def wide_tokenizer(size: int) -> Tokenizer:
    """A tokenizer of `size` tokens: end-of-text, then one for each of as many characters."""
    characters = [chr(code) for code in range(0x20, 0x20 + size + 2048) if not 0xD800 <= code < 0xE000]
    vocabulary = {token: i for i, token in enumerate([END_OF_TEXT, *characters[: size - 1]])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.decoder = decoders.Fuse()  # pyright: ignore[reportAttributeAccessIssue]
    return tokenizer


def assert_same(shard: TokenShard, documents: list[Document], tokenizer: Tokenizer) -> None:
    assert shard.names == tuple(document.name for document in documents)
    assert shard.text_hash == corpus_hash(documents)
    assert isinstance(shard.tokens, np.memmap)
    assert shard.offsets.dtype == np.int64
    for i, document in enumerate(documents):
        np.testing.assert_array_equal(shard.document(i), [*encode(tokenizer, document.text), 0])
    assert len(shard.tokens) == sum(len(shard.document(i)) for i in range(len(documents)))


def test_what_is_written_is_read(tmp_path: Path):
    folder = tmp_path / "deep" / "shard"
    assert_same(write_shard(DOCUMENTS, TOKENIZER, folder), DOCUMENTS, TOKENIZER)
    shard = open_shard(folder)
    assert_same(shard, DOCUMENTS, TOKENIZER)
    assert shard.tokens.dtype == np.uint16
    assert shard.document(1).tolist() == [0]  # an empty document is its end alone
    np.testing.assert_array_equal(shard.document(-1), shard.document(2))
    with pytest.raises(IndexError):
        shard.document(3)
    with pytest.raises(ValueError, match="read-only"):
        shard.tokens[0] = 1


@pytest.mark.parametrize(("size", "dtype"), [(65_536, np.uint16), (65_537, np.uint32), (70_000, np.uint32)])
def test_large_vocabularies_do_not_overflow(tmp_path: Path, size: int, dtype: type):
    tokenizer = wide_tokenizer(size)
    last = tokenizer.id_to_token(size - 1)
    shard = write_shard([Document("d", f"a{last}b")], tokenizer, tmp_path / "shard")
    assert shard.tokens.dtype == dtype
    assert shard.vocab_size == size
    assert shard.document(0).tolist() == [66, size - 1, 67, 0]


def test_a_shard_replaces_a_shard_but_nothing_else(tmp_path: Path):
    folder = tmp_path / "shard"
    folder.mkdir()  # an empty folder is fine
    old = write_shard(DOCUMENTS, TOKENIZER, folder)
    assert_same(write_shard(HELDOUT, TOKENIZER, folder), HELDOUT, TOKENIZER)
    assert_same(old, DOCUMENTS, TOKENIZER)  # still mapped
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("precious")
    for taken in (other, other / "thesis.txt"):
        with pytest.raises(InputError, match="something else"):
            write_shard(DOCUMENTS, TOKENIZER, taken)
    assert (other / "thesis.txt").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "shard"]


def test_no_documents_are_refused(tmp_path: Path):
    with pytest.raises(InputError, match="no documents"):
        write_shard([], TOKENIZER, tmp_path / "shard")
    for train, heldout in (([], HELDOUT), (DOCUMENTS, [])):
        with pytest.raises(InputError, match="no documents"):
            prepare(train, heldout, vocab_size=280, cache=tmp_path)


def test_a_failure_leaves_nothing_and_keeps_the_old_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(text: object) -> str:
        assert (tmp_path / "shard" / "tokens.bin").exists() == written
        raise KeyboardInterrupt

    for written in (False, True):
        with monkeypatch.context() as patch:
            patch.setattr(shards.json, "dumps", fail)  # the last file to be written
            with pytest.raises(KeyboardInterrupt):
                write_shard(HELDOUT, TOKENIZER, tmp_path / "shard")
        assert [path.name for path in tmp_path.iterdir()] == ["shard"] * written
        write_shard(DOCUMENTS, TOKENIZER, tmp_path / "shard")
    assert_same(open_shard(tmp_path / "shard"), DOCUMENTS, TOKENIZER)


def test_a_temporary_folder_left_by_a_kill_is_ignored(tmp_path: Path):
    prepared = prepare(DOCUMENTS, HELDOUT, vocab_size=280, cache=tmp_path)
    entry = prepared.tokenizer_path.parent
    entry.rename(tmp_path / f".{entry.name}.1-dead.tmp")
    (tmp_path / f".{entry.name}.1-dead.tmp" / "heldout" / "meta.json").unlink()
    again = prepare(DOCUMENTS, HELDOUT, vocab_size=280, cache=tmp_path)
    assert_same(again.heldout, HELDOUT, again.tokenizer)


BROKEN_META = [
    b"", b"[]", b"\xff", b'{"format": 1}', {"format": 2}, {"names": "ab"}, {"names": []}, {"names": ["a"]},
    {"vocab_size": "280"}, {"vocab_size": 70_000}, {"tokens": 1}, {"tokens": -1}, {"tokens": True},
    {"end_of_text": 1}, {"text_hash": None},
]  # fmt: skip


@pytest.mark.parametrize("change", BROKEN_META, ids=str)
def test_broken_metadata_is_refused(tmp_path: Path, change: bytes | dict[str, object]):
    write_shard(DOCUMENTS, TOKENIZER, tmp_path / "shard")
    path = tmp_path / "shard" / "meta.json"
    changed = change if isinstance(change, bytes) else json.dumps(json.loads(path.read_text()) | change).encode()
    path.write_bytes(changed)
    with pytest.raises(InputError, match=str(tmp_path / "shard")):
        open_shard(tmp_path / "shard")


@pytest.mark.parametrize("name", ["meta.json", "tokens.bin", "offsets.bin"])
def test_missing_cut_or_overlong_files_are_named(tmp_path: Path, name: str):
    write_shard(DOCUMENTS, TOKENIZER, tmp_path / "shard")
    path = tmp_path / "shard" / name
    whole = path.read_bytes()
    for content in (b"", whole[:-3], whole + whole, None):
        path.unlink() if content is None else path.write_bytes(content)
        with pytest.raises(InputError, match=str(path)):
            open_shard(tmp_path / "shard")


def test_files_of_the_right_size_with_wrong_numbers_are_named(tmp_path: Path):
    write_shard(DOCUMENTS, TOKENIZER, tmp_path / "shard")
    for name in ("tokens.bin", "offsets.bin"):
        path = tmp_path / "shard" / name
        whole = path.read_bytes()
        path.write_bytes(b"\x01" * len(whole))
        with pytest.raises(InputError, match=str(path)):
            open_shard(tmp_path / "shard")
        path.write_bytes(whole)


def test_prepared_is_cached_by_text_and_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first = prepare(DOCUMENTS, HELDOUT, vocab_size=280, cache=tmp_path)
    assert_same(first.train, DOCUMENTS, first.tokenizer)
    assert_same(first.heldout, HELDOUT, first.tokenizer)
    assert first.tokenizer.to_str() == TOKENIZER.to_str()  # trained on the training split alone
    others = [
        prepare(DOCUMENTS, HELDOUT, vocab_size=281, cache=tmp_path),
        prepare(DOCUMENTS[:2], HELDOUT, vocab_size=280, cache=tmp_path),
        prepare(DOCUMENTS, DOCUMENTS, vocab_size=280, cache=tmp_path),
        prepare(HELDOUT, DOCUMENTS, vocab_size=280, cache=tmp_path),
    ]
    assert len({p.tokenizer_path for p in [first, *others]}) == 5
    monkeypatch.setattr(shards, "_fill", None)  # a second call makes nothing
    renamed = [Document("new", document.text) for document in DOCUMENTS]
    again = prepare(renamed, HELDOUT, vocab_size=280, cache=tmp_path)
    assert again.tokenizer_path == first.tokenizer_path
    assert_same(again.train, renamed, again.tokenizer)


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "train/tokens.bin", "train/meta.json", "heldout/offsets.bin", "heldout"]
)
def test_a_broken_cache_entry_is_made_again(tmp_path: Path, name: str):
    def whole(prepared: Prepared) -> None:
        assert_same(prepared.train, DOCUMENTS, prepared.tokenizer)
        assert_same(prepared.heldout, HELDOUT, prepared.tokenizer)
        assert len(list(tmp_path.iterdir())) == 1

    entry = prepare(DOCUMENTS, HELDOUT, vocab_size=280, cache=tmp_path).tokenizer_path.parent
    path = entry / name
    shutil.rmtree(path) if path.is_dir() else path.write_bytes(b"broken")
    whole(prepare(DOCUMENTS, HELDOUT, vocab_size=280, cache=tmp_path))
    shutil.rmtree(entry)
    entry.write_text("a file where the entry should be")
    whole(prepare(DOCUMENTS, HELDOUT, vocab_size=280, cache=tmp_path))


def test_entries_that_do_not_belong_together_are_made_again(tmp_path: Path):
    first = prepare(DOCUMENTS, HELDOUT, vocab_size=280, cache=tmp_path)
    other = prepare([*DOCUMENTS, Document("d", "")], HELDOUT, vocab_size=280, cache=tmp_path)
    shutil.rmtree(first.tokenizer_path.parent / "train")
    shutil.copytree(other.tokenizer_path.parent / "train", first.tokenizer_path.parent / "train")
    assert_same(prepare(DOCUMENTS, HELDOUT, vocab_size=280, cache=tmp_path).train, DOCUMENTS, TOKENIZER)


def test_the_cache_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LONGROUTE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert shards._cache_folder() == tmp_path / "home" / ".cache" / "longroute"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert shards._cache_folder() == tmp_path / "xdg" / "longroute"
    monkeypatch.setenv("LONGROUTE_CACHE", str(tmp_path / "own"))
    assert prepare(DOCUMENTS, HELDOUT, vocab_size=280).tokenizer_path.parents[1] == tmp_path / "own"


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match=r"file.*LONGROUTE_CACHE"):
        prepare(DOCUMENTS, HELDOUT, vocab_size=280, cache=tmp_path / "file")


def prepared_tokens(cache: Path) -> list[int]:
    return prepare(DOCUMENTS, HELDOUT, vocab_size=280, cache=cache).train.tokens.tolist()


def test_processes_may_prepare_at_once(tmp_path: Path):
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(prepared_tokens, [tmp_path] * 12))
    assert all(tokens == found[0] for tokens in found)
    assert len(list(tmp_path.iterdir())) == 1
