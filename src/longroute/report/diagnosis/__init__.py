"""The page of one diagnosis: whether a model breaks, where, why, and what helps; and the same in a few lines."""

from longroute.report.diagnosis.page import write_diagnosis_page
from longroute.report.diagnosis.terminal import terminal_lines
from longroute.report.diagnosis.verdict import verdict

__all__ = ["terminal_lines", "verdict", "write_diagnosis_page"]
