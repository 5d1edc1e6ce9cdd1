"""Perplexity of trained runs at every length, on the same held-out tokens."""

from longroute.evaluate.run import complete_spans as complete_spans
from longroute.evaluate.run import evaluate_run as evaluate_run
from longroute.evaluate.run import load_run as load_run
from longroute.evaluate.spans import EvaluateSpec as EvaluateSpec
from longroute.evaluate.spans import choose_spans as choose_spans
from longroute.evaluate.summary import summarise as summarise
