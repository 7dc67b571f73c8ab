# SPDX-License-Identifier: MIT
"""Starts ddtrace's profiler in the process that finds this on its path, as
ddtrace-run does. In its first 15 seconds it reads by system calls; here it begins
with what it does after them."""
from ddtrace.internal.datadog.profiling import stack

try:
    stack._stack._set_fast_copy_warmup_seconds(0)
except AttributeError:
    pass  # another release: then it is what it is

import ddtrace.profiling.auto  # noqa: E402,F401
