# make check-hazards: what could hurt the application, short form on every Python
# found. HAZARD=signals runs those whose name begins so; HAZARD_LONG=1 the long
# form. Libraries that the tests' programs load: tests/hazards/NAME.c. Programs:
# tests/hazards/programs/NAME.c, static, so that they run in any root and below any
# preload.
.PHONY: check-hazards hazard-libraries
HAZARD      ?=
HAZARD_LONG ?=
HAZARD_LIBS := $(patsubst tests/hazards/%.c,$(B)/hazards/%.so,$(wildcard tests/hazards/*.c))

$(B)/hazards/%.so: tests/hazards/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -Wno-missing-prototypes -fPIC -shared -o $@ $< -ldl -lpthread

HAZARD_PROGRAMS := $(patsubst tests/hazards/programs/%.c,$(B)/hazards/%,$(wildcard tests/hazards/programs/*.c))

$(HAZARD_PROGRAMS): $(B)/hazards/%: tests/hazards/programs/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -std=gnu11 -O1 -g $(WARNINGS) -static -o $@ $<

hazard-libraries: $(HAZARD_LIBS) $(HAZARD_PROGRAMS)

check-hazards: all hazard-libraries
	$(Q)tests/hazards/run $(if $(HAZARD_LONG),--long) $(HAZARD:%=--only %)
