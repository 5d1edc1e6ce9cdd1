"""Perplexity and recall of trained runs at every length, on the same held-out tokens and samples."""

from longroute.evaluate.recall import SOLVED as SOLVED
from longroute.evaluate.recall import TEST_SEED as TEST_SEED
from longroute.evaluate.recall import evaluate_recall as evaluate_recall
from longroute.evaluate.recall import hay_of as hay_of
from longroute.evaluate.recall import lengths_recorded as lengths_recorded
from longroute.evaluate.recall import record_recall as record_recall
from longroute.evaluate.recall import summarise_recall as summarise_recall
from longroute.evaluate.run import complete_spans as complete_spans
from longroute.evaluate.run import evaluate_run as evaluate_run
from longroute.evaluate.run import load_run as load_run
from longroute.evaluate.spans import EvaluateSpec as EvaluateSpec
from longroute.evaluate.spans import choose_spans as choose_spans
from longroute.evaluate.summary import summarise as summarise
