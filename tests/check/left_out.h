/* SPDX-License-Identifier: Apache-2.0 */
/* For the programs that tests of `cuttle check` run, and for these tests. */
#ifndef TESTS_LEFT_OUT_H
#define TESTS_LEFT_OUT_H

enum { LEFT_OUT = 77 }; /* the program's exit status: the device cannot have the fault, or it is not found there */

#endif
