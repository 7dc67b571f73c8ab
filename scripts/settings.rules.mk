# The table of settings as a program, for aprof-run and README.md: the library's
# own parser, and of the floor only what that needs.
SETTINGS_OBJ := $(addprefix $(B)/tool/,preload/settings_main.o preload/config.o hooks/log.o hooks/clock.o hooks/real.o)

$(B)/aprof-settings: $(SETTINGS_OBJ)
	@echo "  LINK  $@"
	$(Q)$(CC) $(SANITIZE) -o $@ $(SETTINGS_OBJ)

# README.md's table, between its two markers.
.PHONY: readme
readme: $(B)/aprof-settings
	$(Q)scripts/readme $(B)/aprof-settings

-include $(SETTINGS_OBJ:.o=.d)
