# make check-hazards: what could hurt the application, short form on every Python
# found. HAZARD=signals runs those whose name begins so; HAZARD_LONG=1 the long
# form. Libraries that the tests' programs load: tests/hazards/NAME.c. Programs:
# tests/hazards/programs/NAME.c, static, so that they run in any root and below any
# preload; diskfs needs libfuse3, and is left out where that is absent.
.PHONY: check-hazards hazard-libraries
HAZARD      ?=
HAZARD_LONG ?=
HAZARD_LIBS := $(patsubst tests/hazards/%.c,$(B)/hazards/%.so,$(wildcard tests/hazards/*.c))

$(B)/hazards/%.so: tests/hazards/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -Wno-missing-prototypes -fPIC -shared -o $@ $< -ldl -lpthread

HAZARD_FUSE     := $(shell pkg-config --cflags --libs fuse3 2>/dev/null)
HAZARD_PROGRAMS := $(patsubst tests/hazards/programs/%.c,$(B)/hazards/%,$(filter-out %/diskfs.c,$(wildcard tests/hazards/programs/*.c)))
HAZARD_DISKFS   := $(if $(HAZARD_FUSE),$(B)/hazards/diskfs)

$(HAZARD_PROGRAMS): $(B)/hazards/%: tests/hazards/programs/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -std=gnu11 -O1 -g $(WARNINGS) -static -o $@ $<

$(B)/hazards/diskfs: tests/hazards/programs/diskfs.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -D_FILE_OFFSET_BITS=64 -std=gnu11 -O1 -g $(WARNINGS) -o $@ $< $(HAZARD_FUSE)

hazard-libraries: $(HAZARD_LIBS) $(HAZARD_PROGRAMS) $(HAZARD_DISKFS)

check-build: hazard-libraries
check-hazards: all hazard-libraries
	$(Q)tests/hazards/run $(if $(HAZARD_LONG),--long) $(HAZARD:%=--only %)
