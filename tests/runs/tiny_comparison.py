"""Comparisons of a second or two on a text of random words, through the command line."""

import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

SMOKE_ENCODINGS = ("rope-qk", "learned-qkv+forget")

LAUNCHER = """
import signal, sys
from longroute.train import loop
loop.CHECKPOINT_SECONDS = 0.1  # in workers too: they import this file
if __name__ == "__main__":
    from longroute.cli.main import main
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    sys.exit(main())
"""


@dataclass(frozen=True)
class Finished:
    """A comparison that was left in peace."""

    out: Path
    code: int
    output: str
    errors: str

    def bytes(self) -> bytes:
        return (self.out / "summary.json").read_bytes()


def words(count: int, seed: int = 0) -> str:
    """Random words with something to learn: every other word decides the next."""
    generator = random.Random(seed)
    pairs = [generator.choice(("the cat", "a dog", "my house", "some tea", "no way", "old sea")) for _ in range(count)]
    return " ".join(pairs)


def corpus(folder: Path) -> tuple[Path, Path]:
    """A text to train on and one to measure on."""
    train, heldout = folder / "train.txt", folder / "heldout.txt"
    train.write_text(words(3000))
    heldout.write_text(words(500, seed=1))
    return train, heldout


def arguments(out: Path, folder: Path, *more: str, steps: int = 20) -> list[str]:
    """A comparison of two encodings that takes `steps` steps of 32 tokens; options given again replace these."""
    train, heldout = corpus(folder)
    command = ["compare", "--preset", "smoke", "--out", str(out), "--text", str(train), "--heldout", str(heldout)]
    command += [] if "--encodings" in more else ["--encodings", "alibi", "learned-qkv+forget"]
    command += [] if "--tasks" in more else ["--tasks", "none"]
    settings = ["model.layers=1", "model.width=16", "model.vocabulary=280", "train.length=8", "train.batch=4"]
    settings += [f"train.tokens={32 * steps}", "train.record_every=10", "evaluate.reach=4", "evaluate.spans=3"]
    given = list(more)
    if "--set" in given:
        settings += given[given.index("--set") + 1 :]
        given = given[: given.index("--set")]
    return [*command, *given, "--set", *settings]


def start(folder: Path, command: list[str]) -> "subprocess.Popen[str]":
    """The command in a process group of its own, with checkpoints ten times a second."""
    launcher = folder / "launcher.py"
    launcher.write_text(LAUNCHER)
    return subprocess.Popen(
        [sys.executable, str(launcher), *command], cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def wait_for(process: "subprocess.Popen[str]", text: str) -> None:
    """Read what a process prints until a line has `text`."""
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if text in line:
            return
    raise AssertionError(f"no line with {text!r} in:\n{''.join(seen)}")


def workers_of(process: "subprocess.Popen[str]") -> list[int]:
    """Process ids of all descendants."""
    found, waiting = [], [process.pid]
    while waiting:
        children = Path(f"/proc/{(pid := waiting.pop())}/task/{pid}/children")
        if children.exists():
            waiting += (new := [int(child) for child in children.read_text().split()])
            found += new
    return found


def runs(pid: int) -> bool:
    """Whether a process is there and not merely waiting to be collected."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill(process: "subprocess.Popen[str]", workers: list[int]) -> None:
    """SIGKILL to the parent alone; its workers must end by themselves."""
    assert process.stderr is not None
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stderr.close()
    wait_until_gone(workers)


def wait_until_gone(pids: list[int], patience: float = 10.0) -> None:
    """Fail if one of the processes is still there after `patience` seconds."""
    until = time.monotonic() + patience
    while any(map(runs, pids)):
        assert time.monotonic() < until, "a worker outlived its parent"
        time.sleep(0.05)
