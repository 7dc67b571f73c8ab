# What `aprof top` draws its screen with. Where ncurses is missing (make setup) the
# program is built without: `aprof top --once` works, the rest says so.
TOP_SRC  := output/screen.c
TOP_HERE := $(shell printf '\043include <ncurses.h>\n' | $(CC) -E -x c - >/dev/null 2>&1 && echo 1)
TOP_LIBS := $(if $(TOP_HERE),-lncursesw -ltinfo)
TOP_LEFT := $(if $(TOP_HERE),,$(TOP_SRC))
