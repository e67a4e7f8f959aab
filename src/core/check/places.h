/* SPDX-License-Identifier: Apache-2.0 */
/* The places of the program that were reported: what happens in a loop is reported once. */
#ifndef CT_CORE_CHECK_PLACES_H
#define CT_CORE_CHECK_PLACES_H

#include <stdbool.h>

struct ct_place;

/* Notes that something of a kind has happened at an instruction; false: it is in the list, or there is no memory. The caller guards the list. */
bool ct_place_is_new(struct ct_place **places, const void *instruction, const char *what, int kind);

#endif
