# make bench: figures, beside their peers and limits. Long: a million samples on
# each Python found. For a look: BENCH_SAMPLES=50000 BENCH_SECONDS=5 BENCH_PAIRS=5
# BENCH_RUNS=1 BENCH_TASKS=1000 BENCH_TASK_SECONDS=6.
BENCH_SAMPLES ?= 1000000
BENCH_SECONDS ?= 60
BENCH_PAIRS   ?= 30
BENCH_RUNS    ?= 7
BENCH_TASKS   ?= 100,1000,10000,50000
BENCH_TASK_SECONDS ?= 12
BENCH_PYTHON  ?=

bench: all $(B)/births_live.so
	$(Q)tests/bench/cost.py --pairs $(BENCH_PAIRS) $(BENCH_PYTHON:%=--python %)
	$(Q)tests/bench/truth.py --samples $(BENCH_SAMPLES) --seconds $(BENCH_SECONDS) $(BENCH_PYTHON:%=--python %)
	$(Q)tests/bench/births.py --runs $(BENCH_RUNS) --library $(B)/births_live.so $(BENCH_PYTHON:%=--python %)
	$(Q)tests/bench/tasks.py --tasks $(BENCH_TASKS) --seconds $(BENCH_TASK_SECONDS) $(BENCH_PYTHON:%=--python %)
