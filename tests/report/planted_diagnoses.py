"""Diagnoses for every situation, made from one real sample, cut down: a random rotation trained at 64 tokens."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

SAMPLE = json.loads((Path(__file__).parent / "diagnosis.json").read_text(encoding="utf-8"))
NEVER = {"length": None, "low": None, "high": None, "searched": 8192}
UNTRACED = "its layers <script>x</script> have no attention that can be looked at"


def sample(**changed: Any) -> dict[str, Any]:
    return copy.deepcopy(SAMPLE) | changed


def no_cause() -> dict[str, Any]:
    result = sample()
    for cause in result["causes"]:
        if cause["recovered"] is not None:
            cause.update(recovered=0.12, low=-0.03, high=0.2)
    return result


def unbroken() -> dict[str, Any]:
    flat = {str(length): 1.01 for length in SAMPLE["lengths"]}
    prediction = SAMPLE["prediction"] | {"breaking": NEVER, "ratio": flat}
    return sample(breaking=NEVER, prediction=prediction, ratio=flat, causes=[], evidence_length=1024)


def untraced() -> dict[str, Any]:
    model = SAMPLE["model"] | {"untraced": UNTRACED}
    prediction = {"from_lengths": [64, 128, 256], "unpredicted": UNTRACED, "breaking": None, "ratio": {}}
    heads = dict.fromkeys(SAMPLE["heads"])
    nothing: dict[str, Any] = {"causes": [], "controls": [], "law": None, "transports": None, "evidence_length": None}
    return sample(model=model, prediction=prediction, heads=heads, **nothing)


def unpredicted() -> dict[str, Any]:
    why = "no length from 128 to 256 tokens was asked for"
    prediction = {"from_lengths": [64], "unpredicted": why, "breaking": None, "ratio": {}}
    return sample(prediction=prediction, law=None)


def predicted_unseen() -> dict[str, Any]:
    return unbroken() | {"prediction": SAMPLE["prediction"]}


def broken_unforeseen() -> dict[str, Any]:
    return sample(prediction=SAMPLE["prediction"] | {"breaking": NEVER})


def only_trained() -> dict[str, Any]:
    kept = {"loss": {"64": 4.5}, "ratio": {"64": 1.0}, "heads": {"64": SAMPLE["heads"]["64"]}, "bins": SAMPLE["bins"]}
    prediction = {"from_lengths": [64], "unpredicted": "no length was asked for", "breaking": None, "ratio": {}}
    nothing: dict[str, Any] = {"causes": [], "controls": [], "law": None, "evidence_length": None}
    breaking = NEVER | {"searched": 64}
    return sample(lengths=[64], prediction=prediction, breaking=breaking, **kept, **nothing)


def resized(layers: int, heads: int) -> dict[str, Any]:
    """The sample with as many layers and heads, made by repeating its own."""

    def grid(table: Any) -> Any:
        return None if table is None else [[table[i % 2][j % 2] for j in range(heads)] for i in range(layers)]

    result = sample(model=SAMPLE["model"] | {"layers": layers, "heads": heads, "kv_heads": heads})
    for table in result["heads"].values():
        for measure in table.values():
            if isinstance(measure, dict):
                measure["mean"] = grid(measure["mean"])
    law = result["law"]
    law["in_range"] = [[(i + j) % 3 > 0 for j in range(heads)] for i in range(layers)]
    law["far_mass"] = {length: grid(table) for length, table in law["far_mass"].items()}
    result["transports"] = [
        {name: values if name == "lags" else [values[j % 2] for j in range(heads)] for name, values in one.items()}
        for one in (result["transports"][i % 2] for i in range(layers))
    ]
    return result


def nulls(value: Any) -> Any:
    """The same tables without a single number."""
    if isinstance(value, list):
        return [nulls(one) for one in value]
    return {key: nulls(one) for key, one in value.items()} if isinstance(value, dict) else None


def without_numbers() -> dict[str, Any]:
    heads = {length: nulls(table) for length, table in SAMPLE["heads"].items()}
    law = SAMPLE["law"] | {"far_mass": nulls(SAMPLE["law"]["far_mass"])}
    moving = [one | {name: nulls(one[name]) for name in one if name != "lags"} for one in SAMPLE["transports"]]
    ratio = SAMPLE["ratio"] | {"8192": None}
    loss = SAMPLE["loss"] | {"8192": None}
    controls = [one | {"after": None, "at_train": None} for one in SAMPLE["controls"]]
    causes = [one | {"recovered": None, "low": None, "high": None, "evidence": {"x": None}} for one in SAMPLE["causes"]]
    return sample(heads=heads, law=law, transports=moving, ratio=ratio, loss=loss, controls=controls, causes=causes)


def position_indexed() -> dict[str, Any]:
    still = sample()["transports"][0]
    still["rate"] = [[1.0] * 5 + [1.0 - 1e-16]] * 2
    still["mixing_window"] = [[None] * 5 + [2.7e16]] * 2
    return sample(transports=[still, still])


def hostile() -> dict[str, Any]:
    name = "<img src=http://evil.example/x onerror=alert(1)> {{ 7 * 7 }} $\\frac{1}$ \x00\x1b[31m " + "long-name-" * 12
    result = sample(text=SAMPLE["text"] | {"documents": [name] * 20}, versions={name: name})
    result["model"]["name"] = name
    result["controls"][0]["name"] = result["causes"][0]["name"] = name
    return result


def open_ended() -> dict[str, Any]:
    """An interval that reaches beyond what was looked at, and one that starts there."""
    predicted = SAMPLE["prediction"] | {"breaking": {"length": 6000.0, "low": None, "high": None, "searched": 8192}}
    return sample(breaking=SAMPLE["breaking"] | {"high": None}, prediction=predicted)


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "sample": sample,
    "no cause": no_cause,
    "unbroken": unbroken,
    "untraced": untraced,
    "unpredicted": unpredicted,
    "predicted, unseen": predicted_unseen,
    "broken, unforeseen": broken_unforeseen,
    "only the training length": only_trained,
    "one head": lambda: resized(1, 1),
    "270 heads": lambda: resized(30, 9),
    "no numbers": without_numbers,
    "position-indexed": position_indexed,
    "partly still": lambda: sample(transports=[None, SAMPLE["transports"][1]]),
    "nothing moves": lambda: sample(transports=[None, None]),
    "nothing tried": lambda: sample(causes=[], controls=[]),
    "hostile": hostile,
    "open-ended": open_ended,
}
