# What `aprof convert -f pprof` takes: protobuf-c, whose compiler makes C of
# output/profile.proto, and zlib. Where they are missing (make setup) the program is built
# without, says so when asked for it, and `make` says so once.
PPROF_SRC   := output/pprof.c
PPROF_MADE  := build/pprof/profile.pb-c
PPROF_HERE  := $(shell command -v protoc-c >/dev/null && printf '\043include <protobuf-c/protobuf-c.h>\n\043include <zlib.h>\n' | \
                       $(CC) -E -x c - >/dev/null 2>&1 && echo 1)
PPROF_OBJ   := $(if $(PPROF_HERE),$(B)/tool/profile.pb-c.o)
PPROF_LIBS  := $(if $(PPROF_HERE),-l:libprotobuf-c.a -lz)
PPROF_LEFT  := $(if $(PPROF_HERE),,$(PPROF_SRC))
CPPFLAGS    += $(if $(PPROF_HERE),-I$(dir $(PPROF_MADE)))

$(PPROF_MADE).h: output/profile.proto
	@mkdir -p $(@D)
	$(Q)protoc-c -I output --c_out=$(@D) $<
$(PPROF_MADE).c: $(PPROF_MADE).h ;
$(B)/tool/profile.pb-c.o: $(PPROF_MADE).c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(B)/tool/output/pprof.o: | $(PPROF_MADE).h
