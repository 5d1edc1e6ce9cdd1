"""The theory's page: a picture a statement, from its record alone."""

from longroute.report.theory.page import write_theory_page as write_theory_page
