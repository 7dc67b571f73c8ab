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
UNIT_DOORS    := $(shell grep -lE 'visibility\("default"\)|constructor' preload/*.c 2>/dev/null)
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

# A fork takes all of jemalloc's locks, more than ThreadSanitizer's deadlock
# detector can count.
check-unit: export TSAN_OPTIONS = detect_deadlocks=0
check-unit: $(UNIT_BINARIES)
	$(Q)for binary in $^; do $$binary || exit 1; done

-include $(UNIT_OBJ:.o=.d) $(UNIT_FAKE_OBJ:.o=.d)
