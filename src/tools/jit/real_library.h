/* SPDX-License-Identifier: Apache-2.0 */
/* The library that a stand-in is before. The build gives each stand-in its name (CT_REAL_LIBRARY, fronted.def), which libcuttle-audit.so replaces
 * by the path that the program would have got. The stand-in depends on it, so functions that only it has are found there. */
#ifndef CT_TOOLS_REAL_LIBRARY_H
#define CT_TOOLS_REAL_LIBRARY_H

#define CT_EXPORTED __attribute__((visibility("default")))

/* Its function of this name; NULL: it has none. */
void *ct_real_function_or_null(const char *name);
/* Calls its function of this name with an object and a place for what it says about that: the size of some code, or the code. Returns the function's
 * result, or `missing` if there is no such function. */
int ct_real_get(const char *name, void *object, void *out, int missing);

#endif
