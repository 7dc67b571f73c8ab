#!/bin/sh
# Golden tests of the reader programs: what `aprof` prints for spools that stand
# here, byte for byte.
#
#   tests/golden/run.sh [APROF]      APROF: the program, build/aprof by default
#   UPDATE=1 tests/golden/run.sh     writes what it prints now as what is expected
#
# A case is a folder: spool/ is copied to a fresh place, live metadata made old
# (its process is dead, then), and each NAME.args is one command line whose
# output, errors and exit status must equal NAME.expected. A file `hold` names a
# live metadata file that is kept locked meanwhile, as its running owner would.
set -u
cd "$(dirname "$0")" || exit 1
here=$PWD
aprof=${1:-$here/../../build/aprof}
case $aprof in /*) ;; *) aprof=$OLDPWD/$aprof ;; esac
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
unset COLUMNS NO_COLOR
passed=0
failed=0

# run_aprof ARGS: unquoted on purpose, patterns in it are for the shell
run_aprof() {
    if [ -f hold ]; then
        # shellcheck disable=SC2086
        flock -x "$(cat hold)" "$aprof" $1
    else
        # shellcheck disable=SC2086
        "$aprof" $1
    fi
}

one() {
    run_aprof "$(cat "$1.args")" >"$work/out" 2>"$work/err" </dev/null
    status=$?
    { cat "$work/out"; sed 's/^/stderr: /' "$work/err"; echo "exit $status"; } >"$work/got"
    [ "${UPDATE:-0}" = 1 ] && cp "$work/got" "$here/$case/$1.expected"
    if diff -u "$here/$case/$1.expected" "$work/got" >"$work/diff" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $case/$1"
        cat "$work/diff"
    fi
}

for folder in */; do
    case=${folder%/}
    cp -R "$here/$case" "$work/$case" && cd "$work/$case" || exit 1
    find . -name '*.json.live' -exec touch -d '2023-11-14 22:30:00 UTC' {} +
    for args in *.args; do
        one "${args%.args}"
    done
    cd "$here" || exit 1
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
