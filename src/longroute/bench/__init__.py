"""Speed, memory and precision, as ratios against what everybody knows."""

from longroute.bench.run import run_bench as run_bench
