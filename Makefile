# libaprof: build, install, tests. No configure step; what is missing is
# installed by `make setup` (also part of `make demo` and `make check`).
#
#   make            build/libaprof.so, build/aprof, build/aprof-settings
#   make check      everything that must hold; installs what is missing
#   make demo       profiles a real service under load and prints what is slow
#   make soak       half an hour of a service that does a little of everything
#   make bench      figures, beside their peers and limits
#   make install PREFIX=/usr/local
#
# Variants live beside each other: make VARIANT=asan|ubsan|tsan|debug ...

VARIANT ?= release
PREFIX  ?= /usr/local
DESTDIR ?=
CC      ?= gcc
V       ?= 0
Q       := $(if $(filter 1,$(V)),,@)
B       := $(if $(filter release,$(VARIANT)),build,build/$(VARIANT))
VERSION := 0.1.0

WARNINGS := -Wall -Wextra -Wshadow -Wundef -Wstrict-prototypes -Wmissing-prototypes \
            -Wwrite-strings -Wvla -Wpointer-arith -Wno-unused-parameter
ifdef CI
WARNINGS += -Werror
endif
CPPFLAGS += -I. -D_GNU_SOURCE -DAPROF_VERSION='"$(VERSION)"'
CFLAGS   ?= -O2 -g
CFLAGS   += -std=gnu11 -fno-omit-frame-pointer $(WARNINGS)
# In the preloaded library: no fortified calls and no general-dynamic TLS, which
# other C libraries lack; nothing is exported that export.map does not name.
LIB_CFLAGS := -fPIC -fvisibility=hidden -ftls-model=initial-exec -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=0 \
              -fno-stack-protector -fno-plt

SAN_asan  := -fsanitize=address,undefined -fno-sanitize-recover=undefined
SAN_ubsan := -fsanitize=undefined -fsanitize-undefined-trap-on-error
SAN_tsan  := -fsanitize=thread
SANITIZE  := $(SAN_$(VARIANT))
CFLAGS    += $(SANITIZE)

# Rooms. output/ has two halves: what the library links, and the programs.
OUTPUT_LIB := output/spool.c output/farewell.c output/answer.c output/place.c output/live.c output/lines.c output/sealing.c output/bound.c output/evict.c output/trouble.c output/buffer.c output/metadata.c output/spool_format.c
LIB_SRC  := $(filter-out preload/settings_main.c,$(wildcard preload/*.c)) $(wildcard hooks/*.c sampler/*.c sampler/cpython/*.c) $(wildcard $(OUTPUT_LIB))
include scripts/pprof.mk
include scripts/top.mk
TOOL_SRC := $(filter-out $(OUTPUT_LIB) $(PPROF_LEFT) $(TOP_LEFT),$(wildcard output/*.c)) output/spool_format.c
TOOL_LIBS := -ljansson -lm $(PPROF_LIBS) $(TOP_LIBS)
LIB_OBJ  := $(LIB_SRC:%.c=$(B)/lib/%.o)
TOOL_OBJ := $(TOOL_SRC:%.c=$(B)/tool/%.o) $(B)/tool/output/template.o $(PPROF_OBJ)

.PHONY: all setup check demo bench install clean
.DEFAULT_GOAL := all
all: $(B)/libaprof.so $(B)/aprof $(B)/aprof-settings

$(B)/lib/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LIB_CFLAGS) -MMD -MP -c -o $@ $<
$(B)/tool/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

include scripts/jemalloc.mk

$(B)/libaprof.so: $(LIB_OBJ) $(JEMALLOC_A) preload/export.map
	@echo "  LINK  $@"
	$(Q)$(CC) $(SANITIZE) -shared -o $@ $(LIB_OBJ) $(JEMALLOC_A) -l:libffi_pic.a \
	    $(if $(SANITIZE),,-Wl$(comma)-z$(comma)defs) -Wl,-z,now -Wl,-z,relro -Wl,--gc-sections -Wl,--exclude-libs,ALL -Wl,--as-needed \
	    -Wl,--hash-style=gnu -Wl,-soname,libaprof.so -Wl,--version-script=preload/export.map
comma := ,

$(B)/aprof: $(TOOL_OBJ)
	@echo "  LINK  $@"
	$(Q)$(CC) $(SANITIZE) -o $@ $(TOOL_OBJ) $(TOOL_LIBS)
	$(if $(TOP_HERE),,@echo 'the screen of aprof top is left out: ncurses is missing (make setup)' >&2)
	$(if $(PPROF_HERE),,@echo 'aprof convert -f pprof is left out: protobuf-c or zlib is missing (make setup)' >&2)

clean:
	rm -rf build

include $(wildcard scripts/*.rules.mk)
-include $(LIB_OBJ:.o=.d) $(TOOL_OBJ:.o=.d)
