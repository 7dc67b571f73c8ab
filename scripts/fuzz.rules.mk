# make fuzz: hostile memory, files and settings, by libFuzzer under AddressSanitizer and
# UndefinedBehaviorSanitizer. FUZZ_SECONDS each, two at a time; FUZZ=frames runs those
# whose name begins so. A target is tests/fuzz/fuzz_NAME.c.
#
# make fuzz-coverage: how far what was found reaches, in lines of each module.
# make fuzz-replay: what was found once, and the corpus in the tree, without libFuzzer:
# any compiler that has the sanitizers will do.
.PHONY: fuzz fuzz-coverage fuzz-targets fuzz-replay fuzz-replayers
FUZZ         ?=
FUZZ_SECONDS ?= 1800
FUZZ_CC      ?= clang
FUZZ_SAN     := -fsanitize=address,undefined -fno-sanitize-recover=all
FUZZ_CFLAGS  := -O1 -g -std=gnu11 -fno-omit-frame-pointer -fPIC -Itests/fuzz/shim -Wno-missing-prototypes -Wno-unused-parameter
FUZZ_LIBS    := $(PPROF_HERE:1=-u pprof_write) $(TOOL_LIBS) -l:libffi_pic.a -lm -ldl -lpthread
FUZZ_NAMES   := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
# Of the library what neither exports a name of libc nor runs at load; heap and guard are the tests' own.
FUZZ_HELPERS := entry heap reset_coros reset_awaiters reset_codes elf
FUZZ_SRC     := $(filter-out $(UNIT_DOORS) hooks/guard.c hooks/mem.c hooks/jemalloc_stubs.c preload/python.c,$(LIB_SRC)) \
                $(filter-out output/aprof.c $(LIB_SRC),$(TOOL_SRC)) $(if $(PPROF_HERE),$(PPROF_MADE).c)

# $(1): directory. $(2): compiler and its options. $(3): what it links with. $(4): objects that have a main.
# fuzz_spool has mappings that may fault, and so hooks/guard.c itself.
define fuzz_rules
$(1)/%.o: %.c
	@mkdir -p $$(@D)
	$$(Q)$(2) $$(CPPFLAGS) $$(FUZZ_CFLAGS) $$(FUZZ_SAN) -MMD -MP -c -o $$@ $$<
$(1)/modules.a: $$(FUZZ_SRC:%.c=$(1)/%.o)
	$$(Q)rm -f $$@ && $$(AR) qcs $$@ $$^
$(if $(PPROF_HERE),$(1)/output/pprof.o: | $(PPROF_MADE).h)
$(1)/fuzz_%: $(1)/tests/fuzz/fuzz_%.o $(4) $$(FUZZ_HELPERS:%=$(1)/tests/fuzz/%.o) $(1)/tests/fuzz/image.o $(1)/hooks/guard.o $(1)/modules.a
	$$(Q)$(3) $$(FUZZ_SAN) -o $$@ $$(filter-out $(1)/$$(if $$(filter spool,$$*),tests/fuzz/image,hooks/guard).o,$$^) $$(FUZZ_LIBS)
-include $$(FUZZ_SRC:%.c=$(1)/%.d) $$(FUZZ_NAMES:%=$(1)/tests/fuzz/fuzz_%.d) $$(FUZZ_HELPERS:%=$(1)/tests/fuzz/%.d) $(1)/tests/fuzz/image.d
endef
$(eval $(call fuzz_rules,$(B)/fuzz,$$(FUZZ_CC) -Wno-string-plus-int -fsanitize=fuzzer-no-link -fno-sanitize-coverage=trace-cmp,$$(FUZZ_CC) -fsanitize=fuzzer,))
$(eval $(call fuzz_rules,$(B)/fuzz-replay,$$(CC),$$(CC),$(B)/fuzz-replay/tests/fuzz/replay.o))
$(eval $(call fuzz_rules,$(B)/fuzz-coverage,$$(FUZZ_CC) -Wno-string-plus-int -fprofile-instr-generate -fcoverage-mapping,$$(FUZZ_CC) -fprofile-instr-generate,$(B)/fuzz-coverage/tests/fuzz/replay.o))
.PRECIOUS: $(B)/fuzz/%.o $(B)/fuzz-replay/%.o $(B)/fuzz-coverage/%.o

fuzz-targets: $(FUZZ_NAMES:%=$(B)/fuzz/fuzz_%)
fuzz-replayers: $(FUZZ_NAMES:%=$(B)/fuzz-replay/fuzz_%)

check-build: fuzz-replayers $(if $(shell command -v $(FUZZ_CC)),fuzz-targets)
fuzz: $(if $(shell command -v $(FUZZ_CC)),fuzz-targets)
	$(Q)tests/fuzz/run --seconds $(FUZZ_SECONDS) --build $(B) $(FUZZ:%=--only %)
fuzz-replay: fuzz-replayers
	$(Q)tests/fuzz/run --replay --build $(B) $(FUZZ:%=--only %)
fuzz-coverage: $(FUZZ_NAMES:%=$(B)/fuzz-coverage/fuzz_%)
	$(Q)tests/fuzz/run --coverage --build $(B) $(FUZZ:%=--only %)
