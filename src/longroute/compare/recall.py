"""The tasks of a comparison: checked before anything long, and put beside what the text runs measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from longroute.compare.worker import Run
from longroute.data.shards import Prepared
from longroute.data.tokenizer import load_tokenizer
from longroute.evaluate import TEST_SEED, summarise_recall
from longroute.task import Hay, draw_split, task_name
from longroute.train import RunSpec
from longroute.train.batches import check_fits


def check_task(spec: RunSpec, text: Prepared, longest: int) -> None:
    """Raises InputError if a run's task can't be drawn at every length to train at, and held out up to `longest`."""
    assert spec.task is not None  # there is nothing to check of a run on text
    for shard, most, heldout in ((text.train, spec.train.length, False), (text.heldout, longest, True)):
        source = spec.task.source(Hay(shard, load_tokenizer(text.tokenizer_path)))
        check_fits(source, spec)
        for length in (source.shortest, most):
            draw_split(source, length, 1, [TEST_SEED], heldout=heldout)


def recalled(run: Run, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a task's run measured, its training's end included; nothing without records."""
    trained = [record for record in records if record["record"] == "train"]
    return {
        "task": task_name(run.spec.task) if run.spec.task else None,
        "context": trained[-1]["context"] if trained else None,
        **summarise_recall([dict(r) for r in records if r["record"] == "recall"], run.spec.train.length),
    }


def joined(runs: Sequence[Run], outcomes: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for every run on text, under its `recall` what the same encoding and seed recalled in each task."""
    rows = []
    for run in runs:
        if run.spec.task is None:
            same = [
                outcomes[other.name]
                for other in runs
                if other.spec.task and (other.spec.encoding, other.spec.seed) == (run.spec.encoding, run.spec.seed)
            ]
            rows.append(outcomes[run.name] | {"recall": {one["task"]: _without_identity(one) for one in same}})
    return rows


def _without_identity(outcome: dict[str, Any]) -> dict[str, Any]:
    known = ("encoding", "transport", "values", "control", "seed", "spec", "task")
    return {key: value for key, value in outcome.items() if key not in known}
