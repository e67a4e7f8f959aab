/* SPDX-License-Identifier: Apache-2.0 */
/* What copy_runtime_stub.c counts, and what it can be told to do. */
#ifndef CUTTLE_TESTS_COPY_RUNTIME_STUB_H
#define CUTTLE_TESTS_COPY_RUNTIME_STUB_H

struct copy_stub {
    int uploads, downloads; /* made */
    int imports, pins;      /* that live */
    int faults;             /* calls that the protocol forbids */
    int refuses_imports, fails_copies;
};
/* Of the library that CUTTLE_COPY_RUNTIME names. */
struct copy_stub *copy_stub_state(void);

#endif
