"""Every edit against attention written out, and hooks that change nothing."""

import math

import pytest
import torch

from longroute.attention import parse_encoding
from longroute.diagnose.decoder import TracedDecoder
from longroute.diagnose.edit import (
    Exact,
    FarShift,
    LogCount,
    Temperature,
    WindowWithSinks,
    WithoutFarMean,
    attention,
)
from longroute.diagnose.heads import SINKS, Heads, row_blocks
from longroute.diagnose.prediction import LongerContext, copies_for, longer_losses, stand_ins
from longroute.diagnose.spec import Text
from longroute.diagnose.tail import tail_losses
from longroute.diagnose.traced import Anatomy
from longroute.model import Decoder, ModelSpec
from longroute.train import TrainSpec
from longroute.transport.frame import RotationFrame

TIME, NEAR, DIM = 40, 10, 8
SHIFT = torch.tensor([1.0, -2.0, 0.0, 3.0], dtype=torch.float64)
ENCODINGS = ["rope-qk", "rope-qkv", "random-qkv", "learned-qk:start=mixing", "alibi", "learned-qkv+forget", "none"]
ENCODINGS += [
    "householder-qkv",
    "block-qk",
    "log-distance",
    "rope-qk+log-count:near=8",
    "window:window=8",
    "alibi:free=2",
]


def heads(seed: int = 0, *, batch: int = 2, charged: bool = False) -> Heads:
    """Two key-value heads for four query heads, float64."""
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(batch, 4, TIME, DIM, generator=generator, dtype=torch.float64)
    key, value = torch.randn(2, batch, 2, TIME, DIM, generator=generator, dtype=torch.float64)
    if not charged:
        return Heads(query, key, value, 0.5)
    charge = -torch.rand(batch, 2, TIME, generator=generator, dtype=torch.float64).cumsum(2)
    slope = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    return Heads(query, key, value, 0.5, charge, slope)


def written_out(one: Heads, change=lambda scores, i, n: scores) -> torch.Tensor:
    """Softmax attention with whole matrices; `change` sees scores, queries' positions and distances."""
    key, value = (x.repeat_interleave(2, 1) for x in (one.key, one.value))
    scores = one.scale * one.query @ key.mT
    if one.charge is not None and one.slope is not None:
        c = one.charge.repeat_interleave(2, 1)
        scores = scores + one.slope[:, None, None] * (c[..., None] - c[:, :, None])
    i = torch.arange(TIME)[:, None]
    n = i - torch.arange(TIME)
    return change(scores, i, n).masked_fill(n < 0, -math.inf).softmax(-1) @ value


def far(n: torch.Tensor) -> torch.Tensor:
    return (n > NEAR) & (torch.arange(TIME) >= SINKS)


@pytest.mark.parametrize("charged", [False, True])
@pytest.mark.parametrize(
    ("edit", "change"),
    [
        (Exact(), lambda s, i, n: s),
        (Temperature(NEAR), lambda s, i, n: s * ((i + 1).double().log() / math.log(NEAR)).clamp(min=1)),
        (LogCount(NEAR), lambda s, i, n: s - far(n) * ((i + 1).double() / NEAR).log().clamp(min=0)),
        (WindowWithSinks(NEAR), lambda s, i, n: s.masked_fill(far(n), -math.inf)),
        (FarShift(NEAR, SHIFT[None]), lambda s, i, n: s + far(n) * SHIFT[:, None, None]),
    ],
)  # fmt: skip
def test_edits_are_what_they_say(edit, change, charged):
    one = heads(charged=charged)
    assert (edit(0, one) - written_out(one, change)).abs().max() < 1e-12


def test_without_far_mean_takes_the_coherent_part_away():
    one = heads()
    weights = written_out(Heads(one.query, one.key, torch.eye(TIME, dtype=torch.float64).expand(2, 2, -1, -1), 0.5))
    n = torch.arange(TIME)[:, None] - torch.arange(TIME)
    value = one.value.repeat_interleave(2, 1)
    flat = far(n).double() / far(n).sum(1, keepdim=True).clamp(min=1)
    expected = weights @ value - (weights * far(n)).sum(-1, keepdim=True) * (flat @ value)
    assert (WithoutFarMean(NEAR)(0, one) - expected).abs().max() < 1e-12


def test_rows_come_in_blocks_that_hold_every_row_once():
    one = heads(batch=1)
    index = torch.cat([rows.index for rows in row_blocks(one, more_keys=1 << 20)])
    assert index.tolist() == list(range(TIME))


@pytest.mark.parametrize("name", ENCODINGS)
def test_looking_changes_no_bit_and_recomputes_the_output(name):
    traced, tokens = tiny(name), torch.randint(50, (2, 33), generator=torch.Generator().manual_seed(0))
    errors: list[float] = []
    plain = traced.losses(tokens[:, :-1], tokens[:, 1:])
    seen = traced.losses(
        tokens[:, :-1],
        tokens[:, 1:],
        visit=lambda layer, one, output: errors.append(
            (attention(one, lambda rows: rows.scores) - output).abs().max().item()
        ),
    )
    assert torch.equal(plain, seen)
    assert len(errors) == 2
    assert max(errors) < 1e-5
    edited = traced.losses(tokens[:, :-1], tokens[:, 1:], edit=Exact())
    assert (edited - plain).abs().max() < 1e-5


def tiny(name: str) -> TracedDecoder:
    """Two layers at the width of 32, in float32."""
    model = Decoder(ModelSpec(2, 32, 4, 2, 8, 48, 50), parse_encoding(name), seed=3)
    return TracedDecoder(model, TrainSpec(length=16, precision="float32"), None, torch.device("cpu"))  # type: ignore[arg-type]  # no text here


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("charged", [False, True])
def test_a_longer_context_is_the_windows_put_end_to_end(values, charged):
    """With one stand-in right before it and as many far tokens as it has, a window feels just that longer text."""
    generator = torch.Generator().manual_seed(5)
    angle = torch.rand(DIM // 2, generator=generator, dtype=torch.float64)
    frame = RotationFrame(torch.arange(1, TIME + 1, dtype=torch.float64).view(1, 1, -1, 1) * angle)
    raw, decay = heads(batch=2), 0.03
    charge = -decay * torch.arange(1, TIME + 1, dtype=torch.float64).view(1, 1, -1) if charged else None
    slope = torch.ones(4, dtype=torch.float64) if charged else None
    pulled_value = frame.pull(raw.value) if values else raw.value
    window = Heads(frame.pull(raw.query), frame.pull(raw.key), pulled_value, 0.5, charge, slope, None, frame, values)
    edit = LongerContext(NEAR, 2.0, torch.tensor([[1, 0]]))
    felt = edit(0, window)

    half = TIME // 2
    (inserted,) = edit._halves(TIME)
    gap = inserted * half
    long = RotationFrame(torch.arange(1, 2 * TIME + gap + 1, dtype=torch.float64).view(1, 1, -1, 1) * angle)
    place = torch.cat([torch.arange(NEAR, TIME), TIME + gap + torch.arange(TIME)])
    key = torch.cat([raw.key[[1, 0], :, NEAR:], raw.key], 2).repeat_interleave(2, 1)
    value = torch.cat([raw.value[[1, 0], :, NEAR:], raw.value], 2).repeat_interleave(2, 1)

    def carried(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        whole = torch.zeros(2, 4, 2 * TIME + gap, DIM, dtype=torch.float64)
        whole[:, :, at] = x
        return long.pull(whole)[:, :, at]

    rows = TIME + gap + torch.arange(TIME)
    scores = 0.5 * carried(raw.query, rows) @ carried(key, place).mT
    n = rows[:, None] - place
    if charged:
        scores = scores - decay * n.double()
    far_tokens = place < TIME
    count = torch.arange(TIME, dtype=torch.float64) / TIME * (TIME / (TIME - NEAR))
    scores = scores + torch.where(far_tokens, count.log()[:, None], 0.0)
    weights = scores.masked_fill(n < 0, -math.inf).softmax(-1)
    expected = weights @ (carried(value, place) if values else value)
    if values:
        expected = expected_in_window_frame(expected, long, frame, rows)
    assert (felt - expected).abs().max() < 1e-9


def expected_in_window_frame(
    x: torch.Tensor, long: RotationFrame, short: RotationFrame, rows: torch.Tensor
) -> torch.Tensor:
    """From the long text's frame into that of its last window."""
    whole = torch.zeros(*x.shape[:2], int(rows[-1]) + 1, x.shape[3], dtype=x.dtype)
    whole[:, :, rows] = x
    return short.pull(long.push(whole)[:, :, rows])


def test_only_past_windows_stand_in():
    assert stand_ins(3, 2, 3).T.tolist() == [[1, 2, 1], [0, 2, 0], [0, 1, 0], [0, 1, 2], [0, 1, 2]]
    assert stand_ins(1, 1, 1).T.tolist() == [[0], [0]]
    assert copies_for(2.0, 256, 64) == 1
    assert copies_for(128.0, 256, 64) == 4


class Copying:
    """A model that knows the next token wherever the last one has been seen before, and else knows nothing.

    Its attention finds the same token by a one-hot match, and its value is the token that followed.
    """

    anatomy = Anatomy("copying", "planted", 16, 1, 1, 1, 512)
    vocabulary = 512

    def losses(self, inputs, targets, *, visit=None, edit=None):
        one_hot = torch.nn.functional.one_hot(inputs, self.vocabulary).double()
        before = torch.nn.functional.pad(one_hot, (0, 0, 1, 0))[:, :-1]
        found = Heads(40.0 * one_hot[:, None], before[:, None], one_hot[:, None], 1.0)
        output = attention(found, lambda rows: rows.scores) if edit is None else edit(0, found)
        logits = (10.0 * output[:, 0]).log_softmax(-1)
        return -logits.gather(-1, targets[..., None])[..., 0]


def test_a_prediction_never_sees_what_it_predicts():
    """On text in which no token comes twice, nothing can be copied: a longer context must not look better."""
    model, text = Copying(), Text(torch.arange(257)[None] + torch.arange(2)[:, None], ("a", "b"))
    looking = {"tail": 96, "window_tokens": 16_384}
    short = tail_losses(model, text, 64, **looking)  # type: ignore[arg-type]  # all that is asked of it
    longer = longer_losses(model, text, 4.0, window=64, near=16, **looking)  # type: ignore[arg-type]
    assert longer.mean() > short.mean() - 0.1
