"""The main job, and the presets that it comes in."""

from longroute.compare.compare import compare as compare
from longroute.compare.compare import read_summary as read_summary
from longroute.compare.pool import default_workers as default_workers
from longroute.compare.spec import CANDIDATES as CANDIDATES
from longroute.compare.spec import DIAL as DIAL
from longroute.compare.spec import PRESETS as PRESETS
from longroute.compare.spec import ComparisonSpec as ComparisonSpec
from longroute.compare.spec import preset as preset
from longroute.compare.text import TextSpec as TextSpec
