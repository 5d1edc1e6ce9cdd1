"""A tiny run in lm-evaluation-harness, without a network: its numbers are those of whole forwards in float64."""

import importlib
import json
import math
import random
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from lm_eval.api.instance import Instance
from lm_eval.evaluator import simple_evaluate
from lm_eval.tasks import TaskManager
from lm_eval.utils import get_rolling_token_windows

from longroute.attention import parse_encoding
from longroute.cli.main import main
from longroute.data.corpus import embedded_books
from longroute.data.tokenizer import encode
from longroute.errors import InputError
from longroute.evaluate import load_run
from longroute.harness import LongrouteLM, windows
from longroute.model import Decoder, ModelSpec
from longroute.task import parse_task
from longroute.train import RunFolder, RunSpec, TrainSpec

pytestmark = pytest.mark.usefixtures("one_thread", "no_network")

BOOK = embedded_books("heldout")[0].text
TINY = ["model.layers=1", "model.width=16", "model.vocabulary=300", "train.length=16", "train.tokens=40000"]
WORDS = " ".join(BOOK[5000:6000].split()[1:-1])
PAIRS = [
    ("It was", " a dark and stormy night"),
    (WORDS, " and all the king's men"),  # a context of 20 training lengths
    ("The answer is ", "yes"),  # the space belongs to the word
    ("größe", " 😀"),
    ("th", "e"),  # joined, they have other tokens
    ("", "Once upon a time"),
    (" ", "Once"),
    ("nothing", ""),
    *((BOOK[place : place + 40], BOOK[place + 40 : place + 42]) for place in range(3000, 4000, 50)),
]


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails a test that tries to reach anything, even where a library swallows the error."""
    tried = []

    def refuse(*where: Any):
        tried.append(where)
        raise OSError("no network in tests")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    yield
    assert not tried


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("harness")
    (folder / "text.txt").write_text(BOOK[:20_000], "utf-8")
    arguments = ["train", "--encoding", "learned-qkv", "--text", str(folder / "text.txt"), "--preset", "smoke"]
    assert main([*arguments, "--out", str(folder / "run"), "--set", *TINY, "train.batch=4"]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def lm(run: Path) -> LongrouteLM:
    return LongrouteLM(run)


@pytest.fixture(scope="module")
def exact(run: Path) -> Decoder:
    return load_run(RunFolder(run), torch.device("cpu")).double()


def requests(*arguments: tuple[Any, ...]) -> list[Any]:
    return [Instance("loglikelihood", {}, one, index) for index, one in enumerate(arguments)]


def tokens(lm: LongrouteLM, text: str) -> list[int]:
    return encode(lm.tokenizer, text).tolist()


@torch.no_grad()
def by_hand(model: Decoder, ids: list[int], count: int) -> tuple[float, bool]:
    """Σ ln p of the last `count` tokens and whether each is the likeliest, from all logits of one float64 forward."""
    logits = model(torch.tensor([ids]))[0, len(ids) - 1 - count : -1]
    last = torch.tensor(ids[len(ids) - count :], dtype=torch.int64)
    return logits.log_softmax(-1)[range(count), last].sum().item(), bool((logits.argmax(-1) == last).all())


def definition(lm: LongrouteLM, model: Decoder, context: str, continuation: str) -> tuple[float, bool]:
    """What `loglikelihood` is: the tokens of the joined text that aren't the stripped context's."""
    ids, before = tokens(lm, context + continuation), tokens(lm, context.rstrip())
    shared = next((i for i, (a, b) in enumerate(zip(ids, before, strict=False)) if a != b), min(len(ids), len(before)))
    return by_hand(model, ids if shared else [0, *ids], len(ids) - shared)


@torch.no_grad()
def greedy(model: Decoder, ids: list[int], count: int) -> list[int]:
    """The likeliest token after all before it, `count` times, or to the end of the text."""
    written: list[int] = []
    while len(written) < count and 0 not in written:
        written.append(int(model(torch.tensor([ids + written]))[0, -1].argmax()))
    return [token for token in written if token]


def test_log_likelihoods_are_those_of_whole_forwards(run: Path, lm: LongrouteLM, exact: Decoder):
    """However they are batched: together, and by themselves, without padding."""
    likeliest = [(text, lm.tokenizer.decode(greedy(exact, tokens(lm, text), 2))) for text in ("It was", "The king")]
    expected = [definition(lm, exact, *pair) for pair in PAIRS + likeliest]
    assert {right for nats, right in expected if nats} == {True, False}
    for model in (lm, LongrouteLM(run, batch_size="1", device="cpu")):
        found = model.loglikelihood(requests(*PAIRS, *likeliest))
        assert [right for _, right in found] == [right for _, right in expected]
        assert [nats for nats, _ in found] == pytest.approx([nats for nats, _ in expected], rel=1e-5, abs=1e-5)
    assert found[PAIRS.index(("nothing", ""))] == (0.0, True)
    assert tokens(lm, "th") != tokens(lm, "the")[:1], "'th' + 'e' was to be joined to a token of its own"


def test_the_continuation_is_scored_after_the_whole_context(lm: LongrouteLM, exact: Decoder):
    """Independent of how a pair is cut: here both parts are whole tokens."""
    ids, count = tokens(lm, WORDS) + tokens(lm, " the"), len(tokens(lm, " the"))
    assert ids == tokens(lm, WORDS + " the")
    (nats, _), (short, _) = lm.loglikelihood(requests((WORDS, " the"), (WORDS[-20:], " the")))
    assert nats == pytest.approx(by_hand(exact, ids, count)[0], rel=1e-5, abs=1e-5)
    assert abs(nats - short) > 1e-3, "a context of 1,000 characters was as good as one of 20"


def test_logits_are_made_of_scored_tokens_alone(lm: LongrouteLM, monkeypatch: pytest.MonkeyPatch):
    made, losses = [], sys.modules["longroute.harness"].answer_losses
    monkeypatch.setattr("longroute.harness.answer_losses", lambda h, w, t: made.append(len(h)) or losses(h, w, t))
    lm.loglikelihood(requests(PAIRS[1]))
    assert made == [len(tokens(lm, PAIRS[1][1]))]
    lm.loglikelihood_rolling(requests((BOOK[:8000],)))
    assert max(made) <= 1024 < sum(made[1:]) == len(tokens(lm, BOOK[:8000]))


def test_a_rolling_text_follows_the_end_of_text_token(lm: LongrouteLM, exact: Decoder):
    texts = [BOOK[:3000], "a", "", "größe 😀"]
    expected = [by_hand(exact, [0, *tokens(lm, text)], len(tokens(lm, text)))[0] for text in texts]
    found = lm.loglikelihood_rolling(requests(*zip(texts, strict=True)))
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_max_length_drops_the_start(run: Path, lm: LongrouteLM, exact: Decoder):
    """A rolling text in the harness's own windows, with each token once; a pair loses the start of its context."""
    short, text, ids = LongrouteLM(run, max_length=8), BOOK[:200], tokens(lm, BOOK[:200])
    cut = get_rolling_token_windows(ids, prefix_token=0, max_seq_len=8, context_len=1)
    whole = [(before[: len(before) - len(after) + 1] + after, len(after)) for before, after in cut]
    assert list(windows([0, *ids], len(ids), 8)) == whole
    expected = sum(by_hand(exact, *window)[0] for window in whole)
    assert short.loglikelihood_rolling(requests((text,)))[0] == pytest.approx(expected, rel=1e-5, abs=1e-5)
    expected, _ = by_hand(exact, tokens(lm, WORDS + " the")[-9:], len(tokens(lm, " the")))
    assert short.loglikelihood(requests((WORDS, " the")))[0][0] == pytest.approx(expected, rel=1e-5, abs=1e-5)
    expected = lm.tokenizer.decode(greedy(exact, tokens(lm, WORDS)[-5:], 3))
    assert short.generate_until(requests((WORDS, {"max_gen_toks": 3}))) == [expected]


def test_generation_is_greedy_and_stops(lm: LongrouteLM, exact: Decoder):
    prompts = ["The king", BOOK[5000:5400], "", "größe 😀"]
    full = [lm.tokenizer.decode(greedy(exact, tokens(lm, prompt) or [0], 40)) for prompt in prompts]
    assert lm.generate_until(requests(*((prompt, {"max_gen_toks": 40}) for prompt in prompts))) == full
    stop = full[0][7:12]
    asked = [
        (prompts[0], {"until": [stop, "never written"], "max_gen_toks": 40}),
        (prompts[1], {"until": full[1][3], "max_new_tokens": 40, "do_sample": False, "temperature": 0.0}),
        (prompts[0], {"until": ["never written"], "max_gen_toks": 5}),
    ]
    five = lm.tokenizer.decode(greedy(exact, tokens(lm, prompts[0]), 5))
    assert lm.generate_until(requests(*asked)) == [full[0].split(stop)[0], full[1].split(full[1][3])[0], five]
    assert len(lm.generate_until(requests(("The king", {})))[0]) >= len(full[0])


def test_the_end_of_text_ends_the_text(run: Path):
    lm = LongrouteLM(run)
    with torch.no_grad():
        lm.model.norm.weight.zero_()  # all logits 0: the first token, the end, is the likeliest
    assert lm.generate_until(requests(("The king", {"max_gen_toks": 40}))) == [""]


def task(folder: Path, name: str, rows: list[dict[str, Any]], **settings: Any) -> dict[str, Any]:
    """A task of a local JSON lines file, as its YAML file would say."""
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    files = {"data_files": {"test": str(folder / f"{name}.jsonl")}, "cache_dir": str(folder / "cache")}
    return {"task": name, "dataset_path": "json", "dataset_kwargs": files, "test_split": "test", **settings}


def test_local_tasks_run_in_the_harness(run: Path, lm: LongrouteLM, exact: Decoder, tmp_path: Path):
    """From a file, by the model's registered name: accuracy, bits per byte and exact match as counted by hand."""
    draw = random.Random(0)
    rows = [
        {"text": BOOK[i : i + 60].strip(), "choices": ["the king", "of", "and all"], "gold": draw.randrange(3)}
        for i in range(2000, 4400, 200)
    ]
    for row in rows:
        row["written"] = lm.tokenizer.decode(greedy(exact, tokens(lm, row["text"]), 4))
    rows[0]["written"] += "!"
    made = [
        task(tmp_path, "choice", rows, output_type="multiple_choice", doc_to_text="text", doc_to_choice="choices")
        | {"doc_to_target": "gold", "metric_list": [{"metric": "acc"}]},
        task(tmp_path, "rolling", rows, output_type="loglikelihood_rolling", doc_to_text="", doc_to_target="text")
        | {"metric_list": [{"metric": "bits_per_byte"}]},
        task(tmp_path, "write", rows, output_type="generate_until", doc_to_text="text", doc_to_target="written")
        | {"metric_list": [{"metric": "exact_match"}], "generation_kwargs": {"until": ["\0"], "max_gen_toks": 4}},
    ]
    for one in made:
        (tmp_path / f"{one['task']}.yaml").write_text(json.dumps(one), "utf-8")  # JSON is YAML
    found: Any = simple_evaluate(
        model="longroute",
        model_args={"folder": str(run)},
        tasks=["choice", "rolling", "write"],
        task_manager=TaskManager(include_path=str(tmp_path), include_defaults=False),
        bootstrap_iters=0,
    )
    results = {name: {key.split(",")[0]: value for key, value in r.items()} for name, r in found["results"].items()}
    likely = [[definition(lm, exact, row["text"], " " + choice)[0] for choice in row["choices"]] for row in rows]
    right = sum(max(range(3), key=nats.__getitem__) == row["gold"] for nats, row in zip(likely, rows, strict=True))
    assert 0 < right < len(rows)
    assert results["choice"]["acc"] == pytest.approx(right / len(rows))
    nats = sum(by_hand(exact, [0, *(ids := tokens(lm, row["text"]))], len(ids))[0] for row in rows)
    size = sum(len(row["text"].encode()) for row in rows)
    assert results["rolling"]["bits_per_byte"] == pytest.approx(-nats / size / math.log(2), rel=1e-5)
    assert results["write"]["exact_match"] == pytest.approx((len(rows) - 1) / len(rows))


def test_what_cannot_be_done_is_said(run: Path, lm: LongrouteLM, tmp_path: Path):
    with pytest.raises(InputError, match="greedy; take do_sample out"):
        lm.generate_until(requests(("a", {"do_sample": True, "temperature": 0.7})))
    with pytest.raises(InputError, match="max_length must be at least 1 token, not 0"):
        LongrouteLM(run, max_length=0)
    folder = RunFolder(tmp_path / "task")
    spec = RunSpec(parse_encoding("alibi"), ModelSpec(), TrainSpec(), task=parse_task("mqar:pairs=2"))
    with folder.open(spec, None), pytest.raises(InputError, match="trained on made-up tokens"):
        LongrouteLM(folder.path)


def test_without_the_harness_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "longroute.harness")
    monkeypatch.setitem(sys.modules, "lm_eval.api.model", None)
    with pytest.raises(InputError, match=r"pip install 'longroute\[harness\]'"):
        importlib.import_module("longroute.harness")
