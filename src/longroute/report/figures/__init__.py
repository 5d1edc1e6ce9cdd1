"""Every picture of the report, as SVG text."""

from longroute.report.figures.draw import draw_figures

__all__ = ["draw_figures"]
