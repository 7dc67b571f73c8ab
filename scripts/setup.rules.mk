# make setup: installs the Debian packages that are missing (scripts/setup).
setup:
	$(Q)scripts/setup
