#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_rooms.sh: includes between rooms point one way, and every one is written
# from the root of the repository. A change that wants an arrow upward wants its
# struct in a lower room, or a callback.
set -eu
cd "$(dirname "$0")/.."

# output/ has two halves; which files the library links, the Makefile says.
agent=$(sed -n 's/^OUTPUT_LIB := //p' Makefile | sed 's/\.c//g; s/  */|/g')

# Files, and what they may include of ours (extended regular expressions).
rules() {
    cat <<END
hooks/.*                                        hooks/
sampler/cpython/.*                              hooks/|sampler/(cpython/|text\.h|counters\.h)
sampler/[^/]*                                   hooks/|sampler/
($agent)\.[ch]      hooks/|output/|sampler/(profile|counters|text|dump)\.h|sampler/metrics\.inc
output/.*                                       output/|sampler/metrics\.inc
preload/.*                                      preload/|output/|sampler/|hooks/
tests/.*                                        tests/|preload/|output/|sampler/|hooks/
END
}

sources() { find hooks sampler output preload tests -name '*.[chS]' -o -name '*.inc' | sort; }

# FILE:INCLUDED for every include of ours.
includes() { sources | xargs grep -Ho '^ *# *include *"[^"]*"' | sed 's/:[^"]*"/:/; s/"$//'; }

# The first rule that fits a file is its rule.
judge() {
    rules=$(rules) awk -F: '
        BEGIN { n = split(ENVIRON["rules"], line, "\n"); for (i = 1; i <= n; i++) { split(line[i], f, " +"); file[i] = "^" f[1] "$"; may[i] = "^(" f[2] ")" } }
        {
            for (i = 1; i <= n && $1 !~ file[i]; i++) ;
            if (i <= n && $2 ~ may[i]) { passed++; next }
            print $1 " may not include \"" $2 "\""
            failed++
        }
        END { printf "%d passed, %d failed\n", passed, failed; exit failed > 0 }'
}

includes | judge
