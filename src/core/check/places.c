/* SPDX-License-Identifier: Apache-2.0 */
#include "places.h"

#include <stdlib.h>
#include <string.h>

struct ct_place {
    struct ct_place *next;
    const void *instruction;
    char *what;
    int kind;
};

bool ct_place_is_new(struct ct_place **places, const void *instruction, const char *what, int kind)
{
    struct ct_place *place = *places;

    for (; place; place = place->next)
        if (place->instruction == instruction && place->kind == kind && !strcmp(place->what, what))
            return false;
    if (!(place = malloc(sizeof *place)))
        return false;
    *place = (struct ct_place){*places, instruction, strdup(what), kind};
    if (!place->what) {
        free(place);
        return false;
    }
    *places = place;
    return true;
}
