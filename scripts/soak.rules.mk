# make soak: a service that does a little of everything, for half an hour, beside
# the same without us: memory and descriptors stay flat, losses do not grow.
# SOAK_SECONDS=1800 SOAK_PYTHON=3.14 (the newest found, unless said).
.PHONY: soak
soak: all hazard-libraries
	$(Q)tests/hazards/run --long --only soak
