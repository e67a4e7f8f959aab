/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenGL context of the calling thread. The library does not link an OpenGL library: it finds what the process has loaded. */
#ifndef CT_CORE_GL_H
#define CT_CORE_GL_H

#include "cuda.h"

#include <stdbool.h>
#include <stdint.h>

struct ct_gl {
    void *context; /* its handle in EGL or GLX, only for comparison */
    int version;   /* ten times the major version + the minor version */
#define NEEDED(result, name, parameters) result(*name) parameters;
#define OPTIONAL(result, name, parameters, version_) result(*name) parameters;
#include "gl_functions.def"
};

/* Finds the context that is current in the calling thread, and forgets the errors that it has recorded so far. `without`: the error if there is none;
 * NOT_SUPPORTED: a context of OpenGL ES, or one before version 3.0. */
CUresult ct_gl_enter(CUresult without, struct ct_gl *out);

/* UNKNOWN: a function has failed since ct_gl_enter or the last call; `what` is for the log. */
CUresult ct_gl_check(const struct ct_gl *gl, const char *what);

bool ct_gl_has_extension(const struct ct_gl *gl, const char *name);

/* Whether OpenGL draws with the device of that UUID. */
bool ct_gl_draws_with(const struct ct_gl *gl, const uint8_t uuid[16]);
/* Whether a processor draws. */
bool ct_gl_is_software(const struct ct_gl *gl);

#endif
