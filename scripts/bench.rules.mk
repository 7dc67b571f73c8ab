# make bench: figures, beside their peers and limits. Long: a million samples on
# each Python found. BENCH_SAMPLES=50000 BENCH_SECONDS=5 BENCH_PAIRS=5 for a look.
BENCH_SAMPLES ?= 1000000
BENCH_SECONDS ?= 60
BENCH_PAIRS   ?= 30
BENCH_PYTHON  ?=

bench: all
	$(Q)tests/bench/cost.py --pairs $(BENCH_PAIRS) $(BENCH_PYTHON:%=--python %)
	$(Q)tests/bench/truth.py --samples $(BENCH_SAMPLES) --seconds $(BENCH_SECONDS) $(BENCH_PYTHON:%=--python %)
