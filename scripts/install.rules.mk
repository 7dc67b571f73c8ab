# make install, make uninstall. The library is not in a directory of the loader:
# nobody links with it, and aprof-run knows where it is.
.PHONY: install uninstall
LIBEXEC := $(DESTDIR)$(PREFIX)/lib/aprof
BIN     := $(DESTDIR)$(PREFIX)/bin

# A library that is replaced in place would crash who has it mapped: install(1)
# unlinks first.
install: all
	install -d '$(LIBEXEC)' '$(BIN)'
	install -m 644 $(B)/libaprof.so '$(LIBEXEC)'/libaprof.so
	install -m 755 $(B)/aprof-settings '$(LIBEXEC)'/aprof-settings
	install -m 755 $(B)/aprof '$(BIN)'/aprof
	sed 's/^ar_version=@VERSION@$$/ar_version=$(VERSION)/' scripts/aprof-run > $(B)/aprof-run.installed
	install -m 755 $(B)/aprof-run.installed '$(BIN)'/aprof-run

uninstall:
	rm -f '$(LIBEXEC)'/libaprof.so '$(LIBEXEC)'/aprof-settings '$(BIN)'/aprof '$(BIN)'/aprof-run
	rmdir --ignore-fail-on-non-empty '$(LIBEXEC)'
