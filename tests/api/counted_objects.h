/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the Vulkan objects that the backend creates and destroys on its devices. Suppressions for the driver's own leaks would hide from
 * LeakSanitizer an object that we fail to destroy, and the validation layer may be missing; the counts depend on neither. */
#ifndef COUNTED_OBJECTS_H
#define COUNTED_OBJECTS_H

#include <stdbool.h>

/* Counts on every device that is opened from now on. Must be called after the backend has created its instance (enumerate). */
void counted_objects_begin(void);

/* Returns the number of objects that existed when their device was destroyed, and of devices that still exist, since the last call. Prints
 * each kind of them. */
unsigned counted_objects_leaked(void);

/* Makes this function, such as "vkDestroyBuffer", a no-op until it is called with NULL, to show that the counts notice it. The objects are
 * destroyed with their device. Returns false if the function is not counted. */
bool counted_objects_omit(const char *destroy_or_null);

#endif
