"""A diagnosis in a few lines of text."""

from collections.abc import Mapping
from typing import Any

from longroute.report.diagnosis.findings import Findings
from longroute.report.diagnosis.verdict import proven, verdict
from longroute.report.diagnosis.words import decimal, percent
from longroute.report.wording import perplexity_text, printable, ratio_text


def terminal_lines(result: Mapping[str, Any]) -> list[str]:
    """The verdict, then ratios and far mass by length, causes and controls; one line each."""
    findings = Findings(result)
    lines = [*verdict(result), "", f"{'tokens':>10}  {'ratio':>7}  {'predicted':>9}  {'far mass':>8}"]
    for length in findings.lengths:
        ratio, predicted = findings.ratios.get(length), findings.predicted_ratios.get(length)
        predicted = predicted if length > findings.read_short else None
        far = percent(findings.mean("far_mass", length))
        lines.append(f"{length:>10,}  {ratio_text(ratio):>7}  {decimal(predicted, 2):>9}  {far:>8}")
    names = {one["name"] for one in proven(findings)}
    tried = [one for one in findings.causes if one["recovered"] is not None]
    if tried:
        lines += ["", f"undoing a cause recovers, of the loss that {findings.evidence_length:,} tokens add:"]
    for one in tried:
        mark = "" if one["name"] in names else "  no cause"
        span = f"({percent(one['low'])} to {percent(one['high'])})"
        lines.append(f"  {printable(one['name']):<24}{percent(one['recovered']):>7} {span}{mark}")
    if findings.controls:
        lines += ["", f"perplexity at {findings.evidence_length:,} tokens with a control switched on at test time:"]
    for one in findings.controls:
        lines.append(
            f"  {printable(one['name']):<24}{perplexity_text(one['before']):>7} → {perplexity_text(one['after'])}"
            f"  ({perplexity_text(one['at_train'])} at the training length)"
        )
    return lines
