"""Every picture of a diagnosis, as SVG text."""

from longroute.report.diagnosis.figures.draw import NAMES, draw_figures

__all__ = ["NAMES", "draw_figures"]
