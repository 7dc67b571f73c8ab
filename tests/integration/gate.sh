#!/bin/sh
# SPDX-License-Identifier: MIT
#
# gate.sh: a CI job that fails if a function takes a larger share of CPU time than it
# did. In a folder with two checkouts, base/ and new/; aprof-run, aprof and python in
# PATH. Runs in turns, so that what the machine does meanwhile meets both alike. The
# spool is the artifact to keep: it is there also when the job is killed.
set -u
for _ in 1 2 3 4 5; do
    (cd base && aprof-run -q -o ../spool/base -- python bench.py) || exit
    (cd new && aprof-run -q -o ../spool/new -- python bench.py) || exit
done
aprof diff --fail-over 1 --require-samples 1000 --markdown spool/base spool/new > comment.md
