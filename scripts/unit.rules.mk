# make check-unit: tests/unit/check_<module>.c against the real memory guard, and
# fake_check_<module>.c against tests/unit/fake_memory.c in its place. A file is
# a suite: it exports Suite *suite_<module>(void), and is picked up by its name.
# The same tests run in every variant: make VARIANT=asan|ubsan|tsan check-unit.
#
# Modules come as an archive, so a test links what it uses. What exports a name
# of libc or runs at load is left out, or the tests' own exit would be ours.

.PHONY: check-unit
UNIT_SRC      := $(wildcard tests/unit/check_*.c)
UNIT_FAKE_SRC := $(wildcard tests/unit/fake_check_*.c)
UNIT_DOORS    := $(shell grep -lE 'visibility\("default"\)|constructor' preload/*.c 2>/dev/null) hooks/direct.c
UNIT_LIB_OBJ  := $(filter-out $(UNIT_DOORS:%.c=$(B)/lib/%.o),$(LIB_OBJ))
UNIT_TOOL_OBJ := $(filter-out $(B)/tool/output/aprof.o $(LIB_OBJ:$(B)/lib/%=$(B)/tool/%),$(TOOL_OBJ))
UNIT_OBJ      := $(UNIT_SRC:%.c=$(B)/unit/%.o)
UNIT_FAKE_OBJ := $(UNIT_FAKE_SRC:%.c=$(B)/unit/%.o) $(B)/unit/tests/unit/fake_memory.o
UNIT_BINARIES := $(B)/check_unit $(if $(UNIT_FAKE_SRC),$(B)/check_unit_fake)
# jemalloc and the modules need each other.
UNIT_MODULES  := -Wl,--start-group $(B)/unit/modules.a $(JEMALLOC_A) -Wl,--end-group
UNIT_LIBS      = $(shell pkg-config --libs check) -l:libffi_pic.a $(TOOL_LIBS)

# A suite has no header: main.c declares it.
$(B)/unit/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -Wno-missing-prototypes -MMD -MP -c -o $@ $<

# main.c is compiled once a binary, with the names of that binary's suites.
$(B)/unit/main.o: UNIT_SUITES = $(UNIT_SRC:tests/unit/check_%.c=%)
$(B)/unit/main_fake.o: UNIT_SUITES = $(UNIT_FAKE_SRC:tests/unit/fake_check_%.c=%)
$(B)/unit/main.o $(B)/unit/main_fake.o: tests/unit/main.c $(UNIT_SRC) $(UNIT_FAKE_SRC)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) '-DSUITES(X)=$(foreach suite,$(UNIT_SUITES),X($(suite)))' -c -o $@ $<

$(B)/unit/modules.a: $(UNIT_LIB_OBJ) $(UNIT_TOOL_OBJ)
	$(Q)rm -f $@ && $(AR) qcs $@ $^

$(B)/check_unit: $(B)/unit/main.o $(UNIT_OBJ) $(B)/unit/modules.a $(JEMALLOC_A)
	@echo "  LINK  $@"
	$(Q)$(CC) $(SANITIZE) -o $@ $(filter %.o,$^) $(UNIT_MODULES) $(UNIT_LIBS)
$(B)/check_unit_fake: $(B)/unit/main_fake.o $(UNIT_FAKE_OBJ) $(B)/unit/modules.a $(JEMALLOC_A)
	@echo "  LINK  $@"
	$(Q)$(CC) $(SANITIZE) -o $@ $(filter %.o,$^) $(UNIT_MODULES) $(UNIT_LIBS)

check-build: $(UNIT_BINARIES)

# A fork takes all of jemalloc's locks, more than ThreadSanitizer's deadlock
# detector can count. Nobody joins a sampler whose process ends.
check-unit: export TSAN_OPTIONS = detect_deadlocks=0:report_thread_leaks=0
# A test that hangs is ended; that a busy machine is slow is no hang.
check-unit: export CK_TIMEOUT_MULTIPLIER = 10
# Every binary is run, all at a time; the last line sums them up.
check-unit: $(UNIT_BINARIES)
	$(Q)for binary in $^; do { $$binary || echo "$$binary failed"; } > $$binary.log & done; wait
	$(Q)cat $(UNIT_BINARIES:%=%.log) | tee $(B)/unit.log
	$(Q)awk '/^[0-9]+ passed, [0-9]+ failed$$/ { passed += $$1; failed += $$3; ran++ } \
	    / failed$$/ && !/passed/ { bad = 1 } \
	    END { print passed + 0 " passed, " failed + 0 " failed"; exit bad || failed || ran != $(words $(UNIT_BINARIES)) }' $(B)/unit.log

# The floor's suites under valgrind. Not sigaction: valgrind's own frames and
# flags are what an application then sees, with us or without.
UNIT_VALGRIND := clock futex guard threads timer mem log task slot
.PHONY: check-unit-valgrind
check-unit-valgrind: $(B)/check_unit
	$(Q)APROF_TEST_VALGRIND=1 valgrind -q --error-exitcode=9 --trace-children=no --suppressions=tests/unit/valgrind.supp \
	    $< $(UNIT_VALGRIND) 2> $(B)/valgrind.log || \
	    { cat $(B)/valgrind.log; exit 1; }

-include $(UNIT_OBJ:.o=.d) $(UNIT_FAKE_OBJ:.o=.d)
