# make check-live: the readers of the interpreter's memory against each Python
# found, by what that Python says of itself. A test is a pair: tests/live/X_live.c,
# a library of its own, and X_live.py, which loads it with ctypes and compares.
# make check-live LIVE=layout runs one of them.
.PHONY: check-live
LIVE      ?= $(patsubst tests/live/%_live.c,%,$(wildcard tests/live/*_live.c))
LIVE_LIBS := $(LIVE:%=$(B)/%_live.so)

# From the archive of check-unit a test takes what it calls; the guard of live.h
# stands in for hooks/guard.c.
$(B)/%_live.so: tests/live/%_live.c tests/live/live.h $(B)/unit/modules.a $(JEMALLOC_A)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LIB_CFLAGS) -shared -o $@ $< $(UNIT_MODULES) -l:libffi_pic.a -ldl

$(B)/unit/modules.a: | $(B)/unit
$(B)/unit:
	@mkdir -p $@

check-build: $(LIVE_LIBS)
check-live: $(LIVE_LIBS)
	$(Q)tests/live/run $^
