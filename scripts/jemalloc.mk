# jemalloc for the library: Debian's archive made into one object in which
# - every name is local, but the few that hooks/mem.c uses, prefixed aprof_je_;
# - what it asks of libm, libgcc_s, the environment or newer C libraries goes to
#   hooks/jemalloc_stubs.c, threads and _exit to libc's own behind our interposers;
# - no constructor runs: it initialises at its first allocation (mem_init), and
#   a program that is not Python pays nothing for it.
# C++ operators are left behind: only members that mem.c needs are linked.

JEMALLOC_A     := $(B)/jemalloc.a
JEMALLOC_USED  := mallocx rallocx dallocx sallocx nallocx mallctl
JEMALLOC_OURS  := $(JEMALLOC_USED) malloc_message malloc_conf
JEMALLOC_ASKED := secure_getenv readlink log exp round _Unwind_Backtrace _Unwind_GetIP pthread_getname_np

# Looked up when it is needed, for `make setup` may have just installed it.
$(JEMALLOC_A): scripts/jemalloc.mk
	@mkdir -p $(@D)
	@echo "  AR    $@"
	$(Q)$(LD) -r $(JEMALLOC_USED:%=-u %) -o $@.o "$$($(CC) -print-file-name=libjemalloc_pic.a)"
	$(Q)objcopy --remove-section=.init_array --remove-section=.rela.init_array \
	    $(foreach name,$(JEMALLOC_OURS) $(JEMALLOC_ASKED),--redefine-sym $(name)=aprof_je_$(name)) \
	    --redefine-sym pthread_create=real_pthread_create --redefine-sym _exit=real__exit $@.o
	$(Q)objcopy $(foreach name,$(JEMALLOC_OURS),--keep-global-symbol=aprof_je_$(name)) $@.o
	$(Q)rm -f $@ && $(AR) rcs $@ $@.o && rm -f $@.o
