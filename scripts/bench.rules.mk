# make bench: figures, beside their peers and limits. Long: a million samples on
# each Python found. For a look: BENCH_SAMPLES=50000 BENCH_SECONDS=5 BENCH_PAIRS=5
# BENCH_RUNS=1 BENCH_TASKS=1000 BENCH_TASK_SECONDS=6.
#
# Beside the peers (make bench-peers alone), from PyPI into build/peers: every
# contestant BENCH_PAIRS times on each program, in turns. BENCH_PEERS_PYTHONS: 3.11
# is Debian's, with its aiohttp; one of the peers comes with 3.15. For a look, ten
# minutes: make bench-peers BENCH_PAIRS=5 BENCH_PEERS_SECONDS=1 BENCH_RUNS=1
# BENCH_STORY_PYTHON=3.11.2 BENCH_ROWS=busy,service-10000,idle-5000,import,storm.
BENCH_SAMPLES ?= 1000000
BENCH_SECONDS ?= 60
BENCH_PAIRS   ?= 30
BENCH_RUNS    ?= 7
BENCH_TASKS   ?= 100,1000,10000,50000
BENCH_TASK_SECONDS ?= 12
BENCH_PYTHON  ?=
BENCH_GOAL_SECONDS ?= 10
BENCH_PEERS_PYTHONS ?= $(or $(BENCH_PYTHON),3.11.2 3.15)
BENCH_PEERS_SECONDS ?= 3
BENCH_ROWS    ?=
BENCH_STORY_PYTHON  ?= $(BENCH_PYTHON)

.PHONY: bench-goals bench-peers bench-reader
bench: all $(B)/births_live.so
	$(Q)tests/bench/cost.py --pairs $(BENCH_PAIRS) $(BENCH_PYTHON:%=--python %)
	$(Q)tests/bench/truth.py --samples $(BENCH_SAMPLES) --seconds $(BENCH_SECONDS) $(BENCH_PYTHON:%=--python %)
	$(Q)tests/bench/shown.py --runs $(BENCH_RUNS) $(BENCH_PYTHON:%=--python %)
	$(Q)tests/bench/births.py --runs $(BENCH_RUNS) --library $(B)/births_live.so $(BENCH_PYTHON:%=--python %)
	$(Q)tests/bench/tasks.py --tasks $(BENCH_TASKS) --seconds $(BENCH_TASK_SECONDS) $(BENCH_PYTHON:%=--python %)
	$(Q)$(MAKE) --no-print-directory bench-reader
	$(Q)$(MAKE) --no-print-directory bench-peers

# The reading programs on spools of 100 MiB and 1 GiB, beside awk: a minute.
bench-reader: $(B)/aprof
	$(Q)tests/bench/reader.py --runs $(BENCH_RUNS) --aprof $(B)/aprof

# What may be spent, beside the goals: a row each. For a look: BENCH_PAIRS=5 BENCH_GOAL_SECONDS=4.
bench-goals: all $(B)/births_live.so
	$(Q)tests/bench/goals.py --pairs $(BENCH_PAIRS) --seconds $(BENCH_GOAL_SECONDS) $(BENCH_PYTHON:%=--python %)

bench-peers: all $(B)/story_live.so
	$(Q)tests/bench/story.py --library $(B)/story_live.so --runs $(BENCH_RUNS) $(BENCH_STORY_PYTHON:%=--python %)
	$(Q)tests/bench/peers.py --pairs $(BENCH_PAIRS) --seconds $(BENCH_PEERS_SECONDS) $(BENCH_ROWS:%=--rows %) $(BENCH_PEERS_PYTHONS:%=--python %)

# As the libraries of check-live are made.
$(B)/story_live.so: tests/bench/story_live.c tests/live/live.h $(B)/unit/modules.a $(JEMALLOC_A)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LIB_CFLAGS) -shared -o $@ $< $(UNIT_MODULES) -l:libffi_pic.a -ldl
