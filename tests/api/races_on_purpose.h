/* SPDX-License-Identifier: Apache-2.0 */
/* For programs whose threads access the same bytes of memory at once on purpose: CUDA orders nothing between their streams, and the contents
 * are not looked at. ThreadSanitizer reports these accesses where the host carries them out, so the functions of the library that access
 * nothing else are named here. ThreadSanitizer calls this function when the program starts. (ci/tsan.supp has what concerns all programs.) */
#ifndef CUTTLE_TESTS_RACES_ON_PURPOSE_H
#define CUTTLE_TESTS_RACES_ON_PURPOSE_H

__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:^ct_copy_rows$\n"      /* core/copy/copy_pieces.c: the bytes of a copy */
           "race:^write_pattern$\n"     /* core/copy/memset.c: the bytes of a fill */
           "race:^store_for_stream$\n"; /* core/copy/stream_value.c: the value of cuStreamWriteValue */
}

#endif
