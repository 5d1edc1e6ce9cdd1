"""Files and folders to documents, and every way in which a file can be wrong."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from longroute.data.corpus import Document, read_documents
from longroute.errors import InputError


def refused(path: Path, *parts: str, text_key: str = "text") -> None:
    """Reading `path` fails with a message that names it and holds all `parts`."""
    with pytest.raises(InputError) as caught:
        read_documents([path], text_key=text_key)
    message = str(caught.value)
    assert all(part in message for part in (str(path), *parts)), message


def file(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def texts(*paths: Path, text_key: str = "text") -> list[str]:
    return [document.text for document in read_documents(paths, text_key=text_key)]


def parquet(folder: Path, column: pa.Array, *, name: str = "text", rows: int = 2) -> Path:
    path = folder / "a.parquet"
    pq.write_table(pa.table({name: column, "number": range(len(column))}), path, row_group_size=rows)
    return path


def test_plain_files_are_one_document_each_kept_as_they_are(tmp_path: Path):
    first = file(tmp_path, "b.txt", "one\r\n two \u2028 é\n")
    second = file(tmp_path, "a.MD", "# three")
    assert read_documents([first, second]) == (
        Document(str(first), "one\r\n two \u2028 é\n"),
        Document(str(second), "# three"),
    )


def test_folders_are_read_in_sorted_order_without_hidden_or_unsupported_files(tmp_path: Path):
    for name in ("b/deep/z.TXT", "a.txt", "c.jsonl", ".git/x.txt", "b/.y.txt", "image.png"):
        file(tmp_path, name, json.dumps({"text": name}) if name.endswith("jsonl") else name)
    (tmp_path / "folder.txt").mkdir()
    assert texts(tmp_path) == ["a.txt", "b/deep/z.TXT", "c.jsonl"]


def test_jsonl_skips_blank_lines_and_empty_texts(tmp_path: Path):
    path = file(tmp_path, "a.jsonl", '{"t": "one"}\n\n{"t": ""}\n{"t": " \\n"}\r\n{"t": "a\\u2028\\ud83d\\ude00"}')
    assert read_documents([path], text_key="t") == (
        Document(f"{path}:1", "one"),
        Document(f"{path}:5", "a\u2028😀"),
    )


def test_parquet_streams_all_row_groups_and_skips_nulls(tmp_path: Path):
    column = ["one", None, "", "two", "é"]
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
        path = parquet(tmp_path, pa.array(column, pa.string()).cast(kind))
        assert pq.ParquetFile(path).num_row_groups == 3
        found = read_documents([path])
        assert [document.text for document in found] == ["one", "two", "é"]
        assert [document.name for document in found] == [f"{path}:{row}" for row in (0, 3, 4)]


def test_byte_order_mark_is_stripped_at_the_start_only(tmp_path: Path):
    assert texts(file(tmp_path, "a.txt", b"\xef\xbb\xbfab\xef\xbb\xbf")) == ["ab\ufeff"]
    assert texts(file(tmp_path, "a.jsonl", b'\xef\xbb\xbf{"text": "ab"}\n')) == ["ab"]


@pytest.mark.parametrize("suffix", ["txt", "jsonl"])
def test_a_line_of_100_megabytes(tmp_path: Path, suffix: str):
    line = "word " * 20_000_000
    content = line if suffix == "txt" else f'{{"text": "{line}"}}'
    assert texts(file(tmp_path, f"a.{suffix}", content))[0] == line


def test_missing_unsupported_and_empty(tmp_path: Path):
    refused(tmp_path / "none.txt", "no such file or folder")
    refused(file(tmp_path, "a.pdf", "x"), ".pdf", ".jsonl, .md, .parquet, .txt")
    refused(file(tmp_path, "plain", "x"), "without a suffix", ".jsonl, .md, .parquet, .txt")
    for suffix in ("txt", "md", "jsonl", "parquet"):
        refused(file(tmp_path, f"empty.{suffix}", b""), "empty")
    refused(file(tmp_path, "blank.txt", " \n\t"), "no text")
    refused(file(tmp_path, "bom.txt", b"\xef\xbb\xbf"), "no text")
    refused(file(tmp_path, "none.jsonl", '\n{"text": ""}\n'), "no text")
    refused(parquet(tmp_path, pa.array([None, " "], pa.string())), "no text")
    folder = tmp_path / "folder"
    file(folder, "a.png", "x")
    refused(folder, "no file to read", ".jsonl, .md, .parquet, .txt")


def test_a_broken_file_inside_a_folder_is_named(tmp_path: Path):
    file(tmp_path, "a.txt", "fine")
    broken = file(tmp_path, "sub/b.txt", b"")
    with pytest.raises(InputError, match=str(broken)):
        read_documents([tmp_path])


def test_bytes_that_are_not_text_are_named_with_their_offset(tmp_path: Path):
    refused(file(tmp_path, "a.txt", b"ab\xc3\xa9\xffz"), "invalid UTF-8 at byte 4", "0xff")
    refused(file(tmp_path, "b.txt", b"\xef\xbb\xbfab\xff"), "invalid UTF-8 at byte 5")
    refused(file(tmp_path, "c.txt", b"\xff\xfea\0b\0"), "byte 0", "UTF-16")
    refused(file(tmp_path, "d.txt", b"\xff\xfe"), "byte 0", "UTF-16")
    refused(file(tmp_path, "e.txt", b"ab\xed\xa0\x80"), "invalid UTF-8 at byte 2")  # a surrogate in bytes
    refused(file(tmp_path, "f.txt", b"ab\xe2\x82"), "invalid UTF-8 at byte 2")  # cut off
    refused(file(tmp_path, "g.md", b"abc\0d"), "NUL at byte 3")
    lines = '{"text": "é"}\n{"text": "'.encode()
    refused(file(tmp_path, "a.jsonl", lines + b'\xff"}\n'), "line 2", "invalid UTF-8 at byte 25")
    refused(file(tmp_path, "b.jsonl", lines + b'\0"}\n'), "line 2", "NUL at byte 25")


def test_broken_json_lines_are_named_with_their_line(tmp_path: Path):
    def second_line(line: str, *parts: str, text_key: str = "text") -> None:
        path = file(tmp_path, "a.jsonl", f'{{"text": "fine", "txet": "x"}}\n{line}\n')
        refused(path, "line 2", *parts, text_key=text_key)

    second_line('{"text": "a"', "not JSON", "character 13")
    second_line("[" * 100_000, "not JSON")
    second_line('{"text": ' + "1" * 5_000 + "}", "not JSON")
    second_line('["text"]', "expected an object", "found list")
    second_line('{"txet": "a", "id": 3}', "no key 'text'", "did you mean 'txet'")
    second_line("{}", "no key 'text'")
    second_line('\ufeff{"text": "a"}', "not JSON")
    second_line('{"text": 3}', "key 'text'", "expected a string, found int")
    second_line('{"text": null}', "found NoneType")
    second_line('{"text": "ab\\ud800"}', "lone surrogate at character 2")
    second_line('{"text": "\\udc00\\ud800"}', "lone surrogate at character 0")
    second_line('{"text": "ab\\u0000"}', "NUL at character 2")


def test_broken_parquet_is_named_with_its_row(tmp_path: Path):
    refused(parquet(tmp_path, pa.array(["a"]), name="txet"), "no column 'text'", "did you mean 'txet'")
    refused(parquet(tmp_path, pa.array([1, 2])), "row 0", "column 'text'", "found int")
    refused(parquet(tmp_path, pa.array(["a", "b", "c", "d\0"])), "row 3", "NUL at character 1")
    refused(parquet(tmp_path, pa.array([b"ab"])), "row 0", "found bytes")
    invalid = pa.Array.from_buffers(pa.string(), 3, pa.array([b"a", b"b", b"c\xff"], pa.binary()).buffers())
    refused(parquet(tmp_path, invalid), "row 2", "invalid UTF-8 at byte 1")
    refused(file(tmp_path, "b.parquet", b"PAR1 nonsense PAR1"), "Parquet")
    good = parquet(tmp_path, pa.array(["a" * 999, "b" * 999])).read_bytes()
    refused(file(tmp_path, "c.parquet", good[:-20]), "Parquet")
    refused(file(tmp_path, "d.parquet", good[:4] + b"\xff" * 300 + good[304:]))
