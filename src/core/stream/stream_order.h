/* SPDX-License-Identifier: Apache-2.0 */
/* Which work of other streams a stream is known to follow. */
#ifndef CT_CORE_STREAM_ORDER_H
#define CT_CORE_STREAM_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* What is recorded in the table's stream after `since` runs behind `point` of the stream `id`. */
struct ct_order_entry {
    unsigned long long id; /* of the other stream; 0: no entry */
    uint64_t point, since;
};

#define CT_ORDER_ENTRIES 16u

/* The latest waits, one for each other stream. What is forgotten is only taken for unordered, which is safe. Guarded by the
 * stream's order_lock. */
struct ct_stream_order {
    struct ct_order_entry entries[CT_ORDER_ENTRIES];
    unsigned next;
};

void ct_stream_order_add(struct ct_stream_order *order, const struct ct_order_entry *entry);
/* `order` waits, from `since` on, for `point` of the stream that `other` is a copy of the table of: what that point follows it follows,
 * too. */
void ct_stream_order_inherit(struct ct_stream_order *order, const struct ct_stream_order *other, uint64_t point, uint64_t since);
bool ct_stream_order_has(const struct ct_stream_order *order, unsigned long long id, uint64_t point);

#endif
