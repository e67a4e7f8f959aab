# SPDX-License-Identifier: Apache-2.0
"""cuDNN of the package index for a PyTorch of Debian's, which finds only what is installed in the system."""

import ctypes
import pathlib
import sysconfig


def load():
    """Loads the library, before PyTorch asks for one of that name; it finds its other parts itself."""
    ctypes.CDLL(pathlib.Path(sysconfig.get_path("purelib")) / "nvidia" / "cudnn" / "lib" / "libcudnn.so.9", ctypes.RTLD_GLOBAL)
