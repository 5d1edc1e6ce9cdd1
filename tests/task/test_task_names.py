"""Tasks by name and back, and every way in which a name, a size or a text can be wrong."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, pre_tokenizers

from longroute.errors import InputError
from longroute.task import (
    MQAR,
    TASKS,
    Copy,
    FlipFlop,
    Hay,
    Needle,
    Passkey,
    PhoneBook,
    Task,
    WordProblem,
    draw_split,
    parse_task,
    task_name,
)

SIZE = st.integers(2, 10**6)
SHARE = st.floats(0, 1, exclude_max=True)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "mqar": st.builds(MQAR, pairs=st.integers(2, 9), queries=SIZE, keys=st.integers(9, 99), values=SIZE, filler=SIZE),
    "flip-flop": st.builds(FlipFlop, ignore=SHARE, sparse=SHARE, dense=SHARE),
    "copy": st.builds(Copy, span=SIZE, marks=SIZE, alphabet=SIZE),
    "phone-book": st.builds(
        PhoneBook,
        letters=st.integers(2, 1000),
        name_length=st.integers(1, 5),
        digits=st.integers(1, 18),
        queries=SIZE,
    ),
    "word-problem": st.builds(
        WordProblem, group=st.sampled_from(["S3", "S4", "S5"]), generators=st.sampled_from(["all", "swaps"])
    ),
    "passkey": st.builds(Passkey, digits=SIZE),
    "needle": st.builds(Needle, keys=st.integers(1, 16), queries=SIZE, digits=SIZE),
}


@pytest.mark.parametrize("name", TASKS)
@settings(max_examples=20)
@given(data=st.data())
def test_through_a_name_and_back(name: str, data: st.DataObject):
    task = data.draw(FIELDS[name])
    assert parse_task(task_name(task)) == task
    assert task_name(parse_task(task_name(task))) == task_name(task)


@pytest.mark.parametrize("name", TASKS)
def test_a_task_of_defaults_is_its_name(name: str):
    assert parse_task(name) == TASKS[name]()
    assert task_name(TASKS[name]()) == name
    whole = ",".join(f"{field.name}={field.default}" for field in fields(TASKS[name]))
    assert task_name(parse_task(f"{name}:{whole}")) == name
    assert TASKS[name].origin


def test_names_by_hand():
    names: dict[str, Task] = {
        "mqar:pairs=8": MQAR(pairs=8),
        "flip-flop:ignore=0,dense=0.5": FlipFlop(ignore=0.0, dense=0.5),
        "copy:marks=1,alphabet=4": Copy(marks=1, alphabet=4),
        "phone-book:queries=1": PhoneBook(queries=1),
        "word-problem:group=S3,generators=swaps": WordProblem(group="S3", generators="swaps"),
        "passkey:digits=2": Passkey(digits=2),
        "needle:keys=1": Needle(keys=1),
    }
    for name, task in names.items():
        assert parse_task(name) == task
    assert task_name(MQAR(pairs=8)) == "mqar:pairs=8"
    assert task_name(WordProblem(generators="swaps", group="S3")) == "word-problem:group=S3,generators=swaps"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("mqra", ["unknown 'mqra'", "did you mean 'mqar'?"]),
        ("flipflop", ["did you mean 'flip-flop'?"]),
        ("pass-key:digits=2", ["did you mean 'passkey'?"]),
        ("", ["unknown ''"]),
        ("mqar:piars=4", ["unknown key 'piars'", "did you mean 'pairs'?"]),
        ("mqar:name=x", ["unknown key 'name'"]),
        ("copy:marks", ["expected FIELD=VALUE, got 'marks'"]),
        ("copy:marks=1,marks=2", ["'marks' stands twice"]),
        ("copy:kind=mqar", ["'kind' is not a field"]),
        ("mqar:pairs=many", ["pairs: expected int, got 'many'"]),
        ("mqar:pairs=4.0", ["pairs: expected int, got 4.0"]),
        ("mqar:pairs=true", ["pairs: expected int, got True"]),
        ("flip-flop:ignore=often", ["ignore: expected float, got 'often'"]),
        ("flip-flop:ignore=NaN", ["ignore: expected a finite number"]),
        ("word-problem:group=S6", ["group: unknown 'S6'", "did you mean 'S5'?", "A5, S3, S4, S5"]),
        ("word-problem:group=5", ["group: unknown 5"]),
        ("word-problem:generators=swap", ["generators: unknown 'swap'", "did you mean 'swaps'?"]),
        ("word-problem:generators=swaps", ["A5"]),
        ("mqar:pairs=1", ["at least two pairs"]),
        ("mqar:values=1", ["at least two pairs and values"]),
        ("mqar:queries=0", ["one query"]),
        ("mqar:filler=0", ["filler"]),
        ("mqar:pairs=17", ["as many keys as pairs"]),
        ("flip-flop:ignore=1", ["must be in [0, 1)"]),
        ("flip-flop:sparse=1.5", ["must be in [0, 1)"]),
        ("flip-flop:dense=-0.1", ["must be in [0, 1)"]),
        ("copy:span=0", ["a span of 1"]),
        ("copy:marks=0", ["one mark"]),
        ("copy:alphabet=1", ["an alphabet of 2"]),
        ("phone-book:name_length=0", ["at least 1"]),
        ("phone-book:digits=-1", ["at least 1"]),
        ("phone-book:queries=0", ["at least 1"]),
        ("phone-book:letters=1", ["letters at least 2"]),
        ("passkey:digits=0", ["at least one digit, not 0"]),
        ("needle:keys=0", ["1 to 16 keys"]),
        ("needle:keys=17", ["1 to 16 keys"]),
        ("needle:digits=0", ["one digit"]),
        ("needle:queries=0", ["at least one query"]),
    ],
)
def test_a_name_that_is_not_one(name: str, parts: list[str]):
    with pytest.raises(InputError) as error:
        parse_task(name)
    assert str(error.value).startswith(f"task {name!r}")
    assert "\n" not in str(error.value)
    for part in parts:
        assert part in str(error.value)


@given(st.text())
def test_any_other_text_is_refused(text: str):
    with pytest.raises(InputError, match="task "):
        parse_task(f"x{text}")


def draw(task: Task, length: int, hay: Hay | None = None) -> None:
    draw_split(task.source(hay), length, 2, [0], heldout=False)


def test_a_phone_book_longer_than_its_names_is_refused():
    """The longest one is not: 16 names, 4 tokens each, one asked for."""
    task = PhoneBook(letters=16, name_length=1, digits=2, queries=1)
    draw(task, 17 * 4 + 2)
    with pytest.raises(InputError, match=r"71 tokens hold 17 entries, but there are 16 names and 100 numbers"):
        draw(task, 18 * 4 - 1)
    with pytest.raises(InputError, match=r"hold 11 entries, but there are 17576 names and 10 numbers"):
        draw(PhoneBook(digits=1, queries=1), 12 * 5 - 1)


@pytest.mark.parametrize("field", ["digits", "name_length"])
def test_long_names_and_numbers_are_drawn_or_refused(field: str):
    """Not all that there are can be put in order to draw some."""
    draw(parse_task(f"phone-book:{field}=12"), 300)
    with pytest.raises(InputError, match=r"at most 2\^63 different names, and numbers"):
        parse_task(f"phone-book:{field}=30")


@pytest.mark.parametrize("task", [Needle(), Passkey()], ids=str)
def test_needles_need_hay(task: Needle | Passkey, hay: Hay):
    with pytest.raises(InputError, match="give it text"):
        task.source(None)
    longest = int(np.diff(hay.shard.offsets).max())
    draw(task, longest, hay)
    with pytest.raises(InputError, match=r"no text is long enough .*: \d+ tokens of one document are needed"):
        draw(task, 2 * longest, hay)


@pytest.mark.parametrize("task", [Needle(), Passkey()], ids=str)
def test_needles_need_a_token_for_each_digit(task: Needle | Passkey, hay: Hay):
    """A tokenizer that begins with a space spells a digit as two."""
    spaced = Tokenizer.from_str(hay.tokenizer.to_str())
    spaced.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)  # pyright: ignore[reportAttributeAccessIssue]
    assert len(spaced.encode("7").ids) == 2
    with pytest.raises(InputError, match="does not spell each digit as one token"):
        draw(task, 500, Hay(hay.shard, spaced))


def test_every_task_has_fields_to_change():
    assert FIELDS.keys() == TASKS.keys()
    assert all(TASKS[name].name == name for name in TASKS)
