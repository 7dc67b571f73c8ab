# make install, make uninstall. The library is not in a directory of the loader:
# nobody links with it, and aprof-run knows where it is.
.PHONY: install uninstall
LIBEXEC := $(DESTDIR)$(PREFIX)/lib/aprof
BIN     := $(DESTDIR)$(PREFIX)/bin
MAN     := $(DESTDIR)$(PREFIX)/share/man

# A library that is replaced in place would crash who has it mapped: install(1)
# unlinks first.
install: all
	install -d '$(LIBEXEC)' '$(BIN)' '$(MAN)'/man1 '$(MAN)'/man7
	install -m 644 $(B)/libaprof.so '$(LIBEXEC)'/libaprof.so
	install -m 755 $(B)/aprof-settings '$(LIBEXEC)'/aprof-settings
	install -m 755 $(B)/aprof '$(BIN)'/aprof
	sed 's/^ar_version=@VERSION@$$/ar_version=$(VERSION)/' scripts/aprof-run > $(B)/aprof-run.installed
	install -m 755 $(B)/aprof-run.installed '$(BIN)'/aprof-run
	install -m 644 $(B)/man/aprof.1 $(B)/man/aprof-run.1 '$(MAN)'/man1
	install -m 644 $(B)/man/libaprof.7 '$(MAN)'/man7

uninstall:
	rm -f '$(LIBEXEC)'/libaprof.so '$(LIBEXEC)'/aprof-settings '$(BIN)'/aprof '$(BIN)'/aprof-run
	rm -f '$(MAN)'/man1/aprof.1 '$(MAN)'/man1/aprof-run.1 '$(MAN)'/man7/libaprof.7
	rmdir --ignore-fail-on-non-empty '$(LIBEXEC)'
