# SPDX-License-Identifier: MIT
"""jail: changes its root directory in mid-run. jail.py FOLDER"""
import os
import sys

from truth import burn

burn(0.3)
os.chroot(sys.argv[1])
os.chdir("/")
burn(1.2)
