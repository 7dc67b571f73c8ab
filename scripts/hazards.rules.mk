# make check-hazards: what could hurt the application, short form on every Python
# found. HAZARD=signals runs those whose name begins so; HAZARD_LONG=1 the long
# form. Libraries that the tests' programs load: tests/hazards/NAME.c.
.PHONY: check-hazards hazard-libraries
HAZARD      ?=
HAZARD_LONG ?=
HAZARD_LIBS := $(patsubst tests/hazards/%.c,$(B)/hazards/%.so,$(wildcard tests/hazards/*.c))

$(B)/hazards/%.so: tests/hazards/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -Wno-missing-prototypes -fPIC -shared -o $@ $< -ldl -lpthread

hazard-libraries: $(HAZARD_LIBS)

check-hazards: all hazard-libraries
	$(Q)tests/hazards/run $(if $(HAZARD_LONG),--long) $(HAZARD:%=--only %)
