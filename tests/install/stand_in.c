/* SPDX-License-Identifier: Apache-2.0 */
/* Another libcuda.so.1: a program that gets it ends with status 77. */
#include <unistd.h>

int cuInit(unsigned flags);

int cuInit(unsigned flags)
{
    _exit(flags ? 1 : 77);
}
