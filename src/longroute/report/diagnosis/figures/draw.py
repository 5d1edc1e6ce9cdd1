"""All figures of a diagnosis, by the name of their file."""

from matplotlib.figure import Figure

from longroute.report.diagnosis.figures.bars import causes_figure, controls_figure
from longroute.report.diagnosis.figures.distance import distance_figure
from longroute.report.diagnosis.figures.far_mass import far_mass_figure, law_figure
from longroute.report.diagnosis.figures.head_maps import head_maps_figure
from longroute.report.diagnosis.figures.ratio import ratio_figure
from longroute.report.diagnosis.figures.transports import autocorrelation_figure, kept_figure, mixing_figure
from longroute.report.diagnosis.findings import Findings
from longroute.report.figures.canvas import svg_text

NAMES = (
    "ratio",
    "causes",
    "controls",
    "far-mass",
    "far-mass-law",
    "distance-short",
    "distance-long",
    "heads",
    "autocorrelation",
    "mixing",
    "kept",
)


def draw_figures(findings: Findings) -> dict[str, str]:
    """SVG text by name, in the order of NAMES; a figure that has nothing to show is left out."""
    traced = findings.traced_lengths
    figures: dict[str, Figure | None] = {
        "ratio": ratio_figure(findings),
        "causes": causes_figure(findings),
        "controls": controls_figure(findings),
        "far-mass": far_mass_figure(findings),
        "far-mass-law": law_figure(findings),
        "distance-short": distance_figure(findings, findings.train_length) if traced else None,
        "distance-long": distance_figure(findings, traced[-1]) if traced[-1:] > [findings.train_length] else None,
        "heads": head_maps_figure(findings),
        "autocorrelation": autocorrelation_figure(findings),
        "mixing": mixing_figure(findings),
        "kept": kept_figure(findings),
    }
    return {name: svg_text(figure, name) for name, figure in figures.items() if figure is not None}
