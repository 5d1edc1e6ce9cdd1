"""From records to figures, tables and one self-contained page; no checkpoint is ever read here."""

from longroute.report.page import write_report

__all__ = ["write_report"]
