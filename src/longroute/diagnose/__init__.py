"""Why a model breaks, and where: measured on a run or on any Hugging Face causal language model."""

from longroute.diagnose.diagnose import Progress as Progress
from longroute.diagnose.diagnose import diagnose as diagnose
from longroute.diagnose.diagnose import predict_breaking as predict_breaking
from longroute.diagnose.job import Diagnosis as Diagnosis
from longroute.diagnose.job import open_diagnosis as open_diagnosis
from longroute.diagnose.light import light_diagnosis as light_diagnosis
from longroute.diagnose.light import span_breaking as span_breaking
from longroute.diagnose.load import load_traced as load_traced
from longroute.diagnose.spec import DiagnoseSpec as DiagnoseSpec
from longroute.diagnose.spec import choose_text as choose_text
from longroute.diagnose.spec import resolve_lengths as resolve_lengths
