"""`longroute generate`: a trained run's text as it comes, and what it says to a wrong command."""

import io
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from torch import Tensor

import longroute.cli.generate as command
from longroute.cli.generate import decoded
from longroute.cli.main import main
from longroute.data.corpus import Document, embedded_books
from longroute.data.tokenizer import encode, end_of_text_id, load_tokenizer, train_tokenizer
from longroute.evaluate import load_run
from longroute.model import GenerateSpec, generate
from longroute.train import RunFolder

pytestmark = pytest.mark.usefixtures("one_thread")

TINY = ["model.layers=1", "model.width=16", "model.vocabulary=280", "train.length=16", "train.tokens=640"]
PROMPT = "größe 😀 The king"


class Shown(io.StringIO):
    """A stdout whose reader sees what was flushed."""

    text = ""

    def flush(self) -> None:
        self.text = self.getvalue()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generate")
    (folder / "text.txt").write_text(embedded_books("heldout")[0].text[:20_000], "utf-8")
    arguments = ["train", "--encoding", "learned-qkv+forget", "--text", str(folder / "text.txt"), "--preset", "smoke"]
    assert main([*arguments, "--out", str(folder / "run"), "--set", *TINY, "train.batch=4"]) == 0
    return folder / "run"


def written(run: Path, prompt: str, spec: GenerateSpec) -> tuple[str, int]:
    """What the verb has to write, from the tokens all at once, and how many follow the prompt."""
    model, tokenizer = load_run(RunFolder(run), torch.device("cpu")), load_tokenizer(run / "tokenizer.json")
    ids = encode(tokenizer, prompt).tolist()
    tokens = [int(token) for token in generate(model, [ids], spec)]
    if (end := end_of_text_id(tokenizer)) in tokens:
        tokens = tokens[: tokens.index(end)]
    return tokenizer.decode(ids + tokens, skip_special_tokens=False) + "\n", len(tokens)


def test_it_writes_the_prompt_and_what_follows(run: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["generate", str(run), "--prompt", PROMPT, "--tokens", "30", "--seed", "3"]) == 0
    output = capsys.readouterr()
    assert output.out.startswith(PROMPT)
    text, count = written(run, PROMPT, GenerateSpec(tokens=30, temperature=0.8, top_p=0.95, seed=3))
    assert output.out == text
    assert re.match(rf"tokens generated: {count}\b", output.err)


def test_every_option_reaches_the_draws(run: Path, capsys: pytest.CaptureFixture[str]):
    options = ["--tokens", "25", "--temperature", "1.5", "--top-p", "0.7", "--seed", "8"]
    assert main(["generate", str(run), "--prompt", PROMPT, *options]) == 0
    assert capsys.readouterr().out == written(run, PROMPT, GenerateSpec(25, 1.5, 0.7, 8))[0]


def test_a_prompt_from_a_file_is_kept_as_it_is(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Line breaks of every kind, the last one too; the file's name may have any suffix."""
    text = "\tThe king\r\nand größe 😀\n\n"
    (tmp_path / "prompt").write_bytes(text.encode())
    assert main(["generate", str(run), "--prompt-file", str(tmp_path / "prompt"), "--tokens", "1"]) == 0
    output = capsys.readouterr()
    expected, count = written(run, text, GenerateSpec(tokens=1))
    assert output.out == expected
    assert output.out.startswith(text)
    assert output.err == f"tokens generated: {count}\n"


def stand_in(monkeypatch: pytest.MonkeyPatch, tokens: Iterator[int]) -> None:
    """Let `tokens` be what the model goes on with."""

    def fake(*given: Any) -> Iterator[Tensor]:
        return (torch.tensor([token]) for token in tokens)

    monkeypatch.setattr(command, "generate", fake)


def test_text_is_shown_before_the_next_token_is_asked_for(run: Path, monkeypatch: pytest.MonkeyPatch):
    stdout, shown, letters = Shown(), [], encode(load_tokenizer(run / "tokenizer.json"), "qzx").tolist()
    assert len(letters) == 3

    def tokens() -> Iterator[int]:
        for token in letters:
            shown.append(stdout.text)
            yield token

    stand_in(monkeypatch, tokens())
    monkeypatch.setattr(sys, "stdout", stdout)
    assert main(["generate", str(run), "--prompt", PROMPT]) == 0
    assert shown == [PROMPT, PROMPT + "q", PROMPT + "qz"]
    assert stdout.text == PROMPT + "qzx\n"


def test_ctrl_c_ends_the_text_with_130(run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    letters = encode(load_tokenizer(run / "tokenizer.json"), "qzx").tolist()

    def tokens() -> Iterator[int]:
        yield from letters
        raise KeyboardInterrupt

    stand_in(monkeypatch, tokens())
    assert main(["generate", str(run), "--prompt", PROMPT]) == 130
    output = capsys.readouterr()
    assert output.out == PROMPT + "qzx\n"
    assert re.fullmatch(r"tokens generated: 3, tokens per second: \d+\.\d\nstopped\n", output.err)


def test_the_end_of_a_document_ends_the_text(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    tokenizer = load_tokenizer(run / "tokenizer.json")
    q, z, x = encode(tokenizer, "qzx").tolist()
    stand_in(monkeypatch, iter([q, z, end_of_text_id(tokenizer), x]))
    assert main(["generate", str(run), "--prompt", PROMPT]) == 0
    output = capsys.readouterr()
    assert output.out == PROMPT + "qz\n"
    assert output.err.startswith("tokens generated: 2,")


TOKENIZER = train_tokenizer([Document("text", "größe € 😀, die Größe €€ 😀😀 " * 9)], vocab_size=275)
TEXTS = st.text("aö€😀\ufffd \n", max_size=12)


@settings(max_examples=60)
@example(ids=[end_of_text_id(TOKENIZER), 40], text="a")
@given(ids=st.lists(st.integers(0, 274), max_size=40), text=TEXTS)
def test_the_pieces_are_the_decoding_of_the_whole(ids: list[int], text: str):
    """Also of tokens that are no text at all, as an untrained model draws them, and of a last character cut short."""
    tokens = encode(TOKENIZER, text).tolist() + ids
    assert "".join(decoded(TOKENIZER, tokens)) == TOKENIZER.decode(tokens, skip_special_tokens=False)


def test_a_character_comes_whole():
    tokens = encode(TOKENIZER, "日本 ☃ ∑").tolist()
    assert len(tokens) > 10, "bytes, not merged"
    assert list(decoded(TOKENIZER, tokens)) == list("日本 ☃ ∑")
    assert list(decoded(TOKENIZER, tokens[:-1])) == [*"日本 ☃ ", "\ufffd"]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a refused command says on stderr; nothing goes to stdout."""
    assert main(["generate", *arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    return output.err


def test_a_prompt_is_given_once(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "prompt.txt").write_text("A", "utf-8")
    for prompts in ([], ["--prompt", ""], ["--prompt", "A", "--prompt-file", str(tmp_path / "prompt.txt")]):
        assert "--prompt TEXT or --prompt-file FILE, one of the two" in refused(capsys, str(run), *prompts)


def test_a_prompt_that_cannot_be_read(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    contents = {"broken.txt": b"gr\xc3\xb6\xdfe", "empty.txt": b""}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    expected = {
        "broken.txt": "broken.txt: invalid UTF-8 at byte 4 (0xdf)",
        "empty.txt": "empty.txt: no text to go on from",
        "missing.txt": "missing.txt: can't be read: No such file or directory",
        "": "can't be read: Is a directory",
    }
    for name, message in expected.items():
        assert message in refused(capsys, str(run), "--prompt-file", str(tmp_path / name))
    assert "--prompt: invalid UTF-8 at character 2" in refused(capsys, str(run), "--prompt", "gr\udcdf")


def test_a_folder_that_is_no_finished_run(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    unfinished = tmp_path / "unfinished"
    shutil.copytree(run, unfinished)
    (checkpoint,) = (unfinished / "checkpoints").iterdir()
    checkpoint.rename(checkpoint.with_name("step-00000003"))
    assert f"{tmp_path / 'config.json'}: No such file" in refused(capsys, str(tmp_path), "--prompt", "A")
    assert "trained for 3 of 10 steps" in refused(capsys, str(unfinished), "--prompt", "A")


def test_options_out_of_range(run: Path, capsys: pytest.CaptureFixture[str]):
    for option, value in (("--tokens", "0"), ("--temperature", "-1"), ("--top-p", "0"), ("--seed", "-1")):
        name = option.removeprefix("--").replace("-", "_")
        assert f"generate: {name} must be" in refused(capsys, str(run), "--prompt", "A", option, value)


def test_a_tokenizer_of_another_run_is_refused_before_anything_is_written(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    shutil.copytree(run, tmp_path / "run")
    _larger_tokenizer().save(str(tmp_path / "run" / "tokenizer.json"))
    assert "isn't in the model's vocabulary of 280" in refused(capsys, str(tmp_path / "run"), "--prompt", "der König")


def _larger_tokenizer() -> Tokenizer:
    return train_tokenizer([Document("text", "ab cd ef gh ij kl mn op qr st uv wx yz der König " * 9)], vocab_size=999)


def test_a_reader_that_leaves_early_is_no_error(run: Path):
    line = shlex.join([sys.executable, "-m", "longroute.cli.main", "generate", str(run), "--prompt", "Once"])
    done = subprocess.run(f"{line} | head -c 1", shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert len(done.stdout) == 1
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
