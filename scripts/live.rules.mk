# make check-live: the readers of sampler/cpython/ against each Python found, by
# what that Python says of itself (tests/live/layout_live.py).
.PHONY: check-live
LIVE_SRC := tests/live/layout_live.c sampler/text.c $(wildcard sampler/cpython/layout*.c) \
            $(addprefix sampler/cpython/,objects.c code.c frames.c states.c)

$(B)/layout_live.so: $(LIVE_SRC) $(wildcard sampler/cpython/*.h) sampler/text.h hooks/guard.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LIB_CFLAGS) -shared -o $@ $(LIVE_SRC) -ldl

check-live: $(B)/layout_live.so
	$(Q)tests/live/run $(B)/layout_live.so
