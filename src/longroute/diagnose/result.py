"""What a diagnosis comes to: everything measured, put side by side as JSON data."""

import math
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from longroute.diagnose.breaking import BREAKS, breaking_length
from longroute.diagnose.causes import CONTROLS, edits, rank_causes
from longroute.diagnose.head_measures import MEASURES, bin_edges
from longroute.diagnose.job import EPSILON, SCHEMA, Diagnosis, mean_loss
from longroute.diagnose.nested import listed, mean_or_none, tensor
from longroute.theory import typical_far_mass
from longroute.train.folder import versions

_EVIDENCE = 16
"""A model that doesn't break shows its controls at this many times its training length."""


def diagnosis_result(
    diagnosis: Diagnosis, prediction: dict[str, Any], measured: dict[str, Any], at: int | None
) -> dict[str, Any]:
    """Everything that was measured and predicted; causes and controls at the length `at`."""
    anatomy, text = diagnosis.model.anatomy, diagnosis.text
    names = list(dict.fromkeys(text.names))
    heads = {str(length): diagnosis.records["loss", length, None]["heads"] for length in diagnosis.lengths}
    transports = diagnosis.records.get(("transports", 0, None))
    return {
        "schema": SCHEMA,
        "versions": versions(),
        "epsilon": EPSILON,
        "model": asdict(anatomy),
        "text": {"documents": names, "stretches": len(text.names), "targets": diagnosis.tail * len(text.names)},
        "lengths": list(diagnosis.lengths),
        "tail": diagnosis.tail,
        "near": diagnosis.train_length,
        "loss": {str(n): mean_loss(diagnosis.units("loss", n) or []) for n in diagnosis.lengths},
        "ratio": {str(n): diagnosis.ratio("loss", n) for n in diagnosis.lengths},
        "breaking": measured,
        "threshold": BREAKS,
        "prediction": prediction,
        "evidence_length": at,
        "causes": _causes(diagnosis, at, measured["length"] is not None, transports),
        "controls": _controls(diagnosis, at),
        "measures": MEASURES,
        "bins": {str(length): bin_edges(length) for length in diagnosis.lengths},
        "heads": heads,
        "law": _far_mass_law(diagnosis),
        "transports": transports["layers"] if transports else None,
    }


def measured_breaking(diagnosis: Diagnosis) -> dict[str, Any]:
    """Where the measured losses pass 1.1 times the perplexity at the training length."""
    units = {length: diagnosis.units("loss", length) for length in diagnosis.lengths}
    return asdict(breaking_length({k: v for k, v in units.items() if v is not None}, diagnosis.train_length))


def evidence_length(diagnosis: Diagnosis, breaking: float | None) -> int | None:
    """Where causes and controls are measured: past the break; where there is none, well beyond the training length."""
    beyond = [length for length in diagnosis.lengths if length > diagnosis.train_length]
    if not beyond or not diagnosis.traced:
        return None
    if breaking is None:
        return max([n for n in beyond if n <= _EVIDENCE * diagnosis.train_length] or beyond[:1])
    return min(length for length in beyond if length >= breaking)


def edge_excess(diagnosis: Diagnosis, at: int) -> Tensor | None:
    """By how much far scores are above those of the last trained distances, (layer head), nats of free energy."""
    heads = diagnosis.records["loss", at, None]["heads"]
    if heads is None:
        return None
    far, edge = (tensor(heads[name]["mean"]) for name in ("far_free_energy", "edge_free_energy"))
    return far - edge


def _causes(
    diagnosis: Diagnosis, at: int | None, breaks: bool, transports: dict[str, Any] | None
) -> list[dict[str, Any]]:
    """Ranked causes; none for a model that doesn't break."""
    if at is None or not breaks:
        return []
    undone = {name: diagnosis.units("edit", at, name) for name in edits(1, torch.zeros(1, 1))}
    found = {name: units for name, units in undone.items() if units is not None}
    count = min((len(units) for units in found.values()), default=0)
    trained, broken = diagnosis.units("loss", diagnosis.train_length), diagnosis.units("loss", at)
    assert trained is not None  # both were measured on the way here
    assert broken is not None
    evidence = _evidence(diagnosis, at, transports)
    return [asdict(cause) for cause in rank_causes(trained[:count], broken[:count], found, evidence)]


def _evidence(diagnosis: Diagnosis, at: int, transports: dict[str, Any] | None) -> dict[str, dict[str, float | None]]:
    """The numbers beside each cause, means over all heads."""
    first = next((n for n in diagnosis.lengths if n > diagnosis.train_length), at)
    here, before = (diagnosis.records["loss", n, None]["heads"] for n in (at, first))
    if here is None or before is None:
        return {}
    excess = edge_excess(diagnosis, at)
    far, incoherent = (tensor(here[name]["mean"]) for name in ("far_norm", "incoherent_norm"))
    norms = [layer["norm"] for layer in (transports or {}).get("layers", []) if layer]
    return {
        "dilution": {
            f"far mass at {first:,} tokens": mean_or_none(tensor(before["far_mass"]["mean"])),
            f"far mass at {at:,} tokens": mean_or_none(tensor(here["far_mass"]["mean"])),
        },
        "untrained positions": {
            "far free energy above that of trained distances, nats": None if excess is None else mean_or_none(excess)
        },
        "coherent far values": {
            "norm of the far sum over its incoherent value": mean_or_none((far / incoherent).sqrt())
        },
        "precision": {},
        "contraction": {
            "least norm kept by a transport": min((min(map(min, norm)) for norm in norms), default=None),
        },
    }


def _controls(diagnosis: Diagnosis, at: int | None) -> list[dict[str, Any]]:
    """Every control with perplexity before and after, on the same text."""
    if at is None:
        return []
    rows = []
    for name, meaning in CONTROLS.items():
        after, before = diagnosis.units("edit", at, name), diagnosis.units("loss", at)
        trained = diagnosis.units("loss", diagnosis.train_length)
        if after is None or before is None or trained is None:
            continue
        losses = [mean_loss(units[: len(after)]) for units in (trained, before, after)]
        at_train, was, now = (math.exp(min(loss, 700.0)) for loss in losses)
        rows.append({"name": name, "meaning": meaning, "length": at, "at_train": at_train, "before": was, "after": now})
    return rows


def _far_mass_law(diagnosis: Diagnosis) -> dict[str, Any] | None:
    """Each head's far mass as its near partition and far free energy at the short length say, beside the measured.

        ρ(F) = 1 / (1 + (Z + S) e^{-f} / F),    S the sinks' own partition

    Outside the law's range are heads with ln F ≤ σ² / 2 (a few maxima carry their far sum, and f still grows with F),
    and heads with a distance bias or a window, whose f falls with F.
    """
    window = diagnosis.window
    if window is None or window == diagnosis.lengths[-1]:
        return None
    short = diagnosis.records["loss", window, None]["heads"]
    names = ("far_count", "near_partition", "sink_partition", "far_free_energy", "far_variance")
    far, near, sinks, energy, variance = (tensor(short[name]["mean"]) for name in names)
    others = torch.stack([near, sinks.nan_to_num(-math.inf)]).logsumexp(0)
    known = others.isfinite() & energy.isfinite() & (far > 0)
    in_range = known & (far.log() > variance / 2) & ~torch.tensor(short["biased"])[:, None]
    predicted = {}
    for length in (n for n in diagnosis.lengths if n > window):
        count = far + 0.75 * (length - window)  # rows are sampled from the last half, which sees 3 / 4 on average
        odds = energy.where(known, 0) - others.where(known, 0)
        law = torch.as_tensor(typical_far_mass(count.where(known, 1).numpy(), 1.0, odds.numpy()))
        predicted[str(length)] = listed(law.where(known, math.nan))
    return {"from_length": window, "in_range": in_range.tolist(), "far_mass": predicted}
